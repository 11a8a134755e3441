# frozen_string_literal: true

require_relative "../scope/region_blocks"
require_relative "map_helper"
require_relative "in_browser"
require "culet/render/map/html"

# The page opened in a real browser with no network to be had, and hands put on it.
class MapBrowserTest < Minitest::Test
  include MapHelper
  include InBrowser

  PAGE = Synthetic::PAGE
  # Where the canvas is wide and high, in a window of 1400 x 900.
  MIDDLE = [500, 450].freeze
  HOSTILE = %(<script>alert(1)</script><img src=x onerror="window.pwned=1">)

  def with_page(*snapshots, largest_bytes: Culet::Map::Html::LARGEST_BYTES, **opening)
    showing(Culet::Map::Html.new(snapshots, largest_bytes: largest_bytes).to_s, **opening) do |browser, path|
      browser.evaluate(PROBES)
      yield browser, path
    end
  end

  # The colour in the middle of the cell that shows an address, as "#rrggbb".
  def colour_of(browser, address)
    browser.evaluate(<<~JAVASCRIPT)
      (function () {
        var view = culetMap.view, found = locate(#{address});
        view.draw();
        var at = Math.floor((found.row + 0.5 - view.y) * view.scale) * view.width + Math.floor((found.column + 0.5 - view.x) * view.scale);
        return "#" + Array.from(view.image.data.slice(at * 4, at * 4 + 3)).map(function (one) { return one.toString(16).padStart(2, "0"); }).join("");
      }())
    JAVASCRIPT
  end

  # Address of the first page of malloc's main heap for which the block is true, given its bytes in use and its bits.
  def find_page(snapshot, &block)
    region = snapshot.regions.find { |one| one.holds == "main" }
    fills = region.fill_runs.flat_map { |count, used| [used] * count }
    bits = snapshot.mappings.find { |one| one.id == region.mapping }.page_runs.flat_map { |count, one| [one] * count }
    region.start + (fills.zip(bits).index(&block) * PAGE)
  end

  def hex(kind, fullness) = format("#%02x%02x%02x", *Culet::Map::Palette.shade(Culet::Map::Palette::INDEX.fetch(kind), fullness))

  def legend(browser, kind, shown)
    browser.evaluate("(function () { var box = document.querySelector('[data-kind=\"#{kind}\"]'); " \
                     "if (box.checked !== #{shown}) { box.click(); } return box.checked; }())")
  end

  def test_pages_have_the_colours_of_their_states
    snapshot = MapHelper.snapshot
    with_page(snapshot) do |browser|
      full = find_page(snapshot) { |used, bits| used == PAGE && bits == 5 }
      free = find_page(snapshot) { |used, bits| used.zero? && bits == 5 }
      returned = find_page(snapshot) { |_, bits| bits.zero? }
      part = find_page(snapshot) { |used, bits| used.between?(1, PAGE - 1) && bits == 5 }
      used = snapshot.regions.find { |one| one.holds == "main" }.fill_runs.flat_map { |count, bytes| [bytes] * count }[(part - MapHelper::HEAP) / PAGE]
      assert_equal [hex(:heap, 1), hex(:heap, 0), hex(:returned, 0), hex(:stack, 1), hex(:file, 1)],
                   [full, free, returned, MapHelper::STACK + (2040 * PAGE), MapHelper::LIBRARY].map { |address| colour_of(browser, address) }
      colour_of(browser, part).scan(/\h\h/).zip(hex(:heap, used / 4096.0).scan(/\h\h/)) { |drawn, told| assert_in_delta told.hex, drawn.hex, 1 }
    end
  end

  def test_totals_beside_the_picture_equal_those_of_json
    snapshot = MapHelper.snapshot
    json = Culet::Map::Totals.new(snapshot).to_h
    with_page(snapshot) do |browser|
      shown = browser.evaluate("Object.fromEntries(Array.from(document.querySelectorAll('td[data-key]'))" \
                               ".map(function (one) { return [one.dataset.key, Number(one.dataset.bytes)]; }))")
      %w[rss_bytes pss_bytes used_bytes free_resident_bytes free_returned_bytes metadata_bytes mmapped_bytes tcache_bytes trim_bytes].each do |key|
        assert_equal json.fetch(key), shown.fetch(key), key
      end
      assert_equal json["ruby"].values_at("live_bytes", "free_bytes"), shown.values_at("live_bytes", "free_bytes")
      drawn = browser.evaluate("tally()")
      assert_equal json["used_bytes"], drawn["used"]
      assert_equal json["free_returned_bytes"], drawn["returned"]
      assert_equal json["used_bytes"] + json["free_resident_bytes"], drawn["heap"]
    end
  end

  def test_the_wheel_zooms_about_the_pointer_down_to_single_blocks
    snapshot = MapHelper.snapshot
    with_page(snapshot) do |browser|
      before = browser.evaluate("[culetMap.view.scale, culetMap.view.x + #{MIDDLE[0]} / culetMap.view.scale]")
      6.times { browser.mouse("mouseWheel", *MIDDLE, deltaX: 0, deltaY: -400) }
      after = browser.evaluate("[culetMap.view.scale, culetMap.view.x + #{MIDDLE[0]} / culetMap.view.scale]")
      assert_operator after[0], :>, before[0] * 20
      assert_in_delta before[1], after[1], 0.01
      part = find_page(snapshot) { |used, bits| used.between?(512, PAGE - 512) && bits == 5 }
      colours = browser.evaluate(<<~JAVASCRIPT)
        (function () {
          var view = culetMap.view, seen = {};
          look(#{part});
          var data = view.image.data;
          for (var at = 0; at < data.length; at += 4) { seen["#" + [data[at], data[at + 1], data[at + 2]].map(function (one) { return one.toString(16).padStart(2, "0"); }).join("")] = true; }
          return Object.keys(seen);
        }())
      JAVASCRIPT
      assert_empty [Culet::Map::Palette::BLOCKS["used"], Culet::Map::Palette::BLOCKS["free"]] - colours
    end
  end

  def test_pointing_at_a_block_tells_its_address_size_and_state
    snapshot = MapHelper.snapshot
    part = find_page(snapshot) { |used, bits| used.between?(512, PAGE - 512) && bits == 5 }
    region = snapshot.regions.find { |one| one.holds == "main" }
    offset, bytes, state = RegionBlocks.of(region).find { |at, size, _| at + size > part - region.start }
    with_page(snapshot) do |browser|
      browser.evaluate("look(#{part})")
      place = browser.evaluate("(function () { var view = culetMap.view, found = locate(#{part}); " \
                               "return [(found.column - view.x) * view.scale + 4, (found.row - view.y) * view.scale + 6]; }())")
      browser.mouse("mouseMoved", *place)
      text = browser.evaluate("document.getElementById('tip').innerText")
      words = { RegionBlocks::USED => "in use", RegionBlocks::FREE => "free" }.fetch(state)
      assert_includes text, "block 0x#{(region.start + offset).to_s(16)}: #{bytes.to_s.reverse.scan(/\d{1,3}/).join(",").reverse} bytes, #{words}"
      assert_includes text, "page 0x#{part.to_s(16)}: malloc"
      assert_includes text, "Main arena"
    end
  end

  def test_ruby_slots_are_seen_one_by_one
    snapshot = MapHelper.snapshot
    page = snapshot.ruby_pages.first
    with_page(snapshot) do |browser|
      states = browser.evaluate("Array.from({ length: 200 }, function (_, slot) " \
                                "{ return culetMap.view.picture.blocks.at(#{page.address + page.first_slot} + slot * 40).state; })")
      assert_equal page.live.unpack1("b200").chars.map { |bit| bit == "1" ? "live" : "vacant" }, states
    end
  end

  def test_dragging_keys_and_buttons_move_and_zoom
    with_page(MapHelper.snapshot) do |browser|
      state = -> { browser.evaluate("[culetMap.view.scale, culetMap.view.x, culetMap.view.y]") }
      whole = state.call
      browser.drag(MIDDLE, [MIDDLE[0] - 100, MIDDLE[1] - 50])
      dragged = state.call
      assert_in_delta whole[1] + (100 / whole[0]), dragged[1], 0.01
      assert_in_delta whole[2] + (50 / whole[0]), dragged[2], 0.01
      browser.evaluate("document.querySelector('canvas').focus()")
      browser.key("+")
      assert_operator state.call[0], :>, whole[0]
      moved = state.call
      browser.key("ArrowRight")
      assert_operator state.call[1], :>, moved[1]
      browser.evaluate("document.querySelector('[data-zoom=whole]').click()")
      assert_equal whole, state.call
      browser.evaluate("document.querySelector('[data-goto=\"arena-1\"]').click()")
      refute_equal whole, state.call
    end
  end

  def test_filters_fade_what_is_not_asked_for
    snapshot = MapHelper.snapshot
    with_page(snapshot) do |browser|
      full = find_page(snapshot) { |used, bits| used == PAGE && bits == 5 }
      shared = find_page(snapshot) { |used, bits| used == PAGE && bits == 1 }
      free = find_page(snapshot) { |used, bits| used.zero? && bits == 5 }
      red = hex(:heap, 1)
      assert_equal false, legend(browser, "heap", false)
      refute_equal red, colour_of(browser, full)
      assert_equal hex(:heap, 0), colour_of(browser, free)
      legend(browser, "heap", true)
      browser.evaluate("document.querySelector('[name=mapped][value=private]').click()")
      assert_equal red, colour_of(browser, full)
      refute_equal red, colour_of(browser, shared)
      browser.evaluate("document.querySelector('[name=mapped][value=shared]').click()")
      assert_equal red, colour_of(browser, shared)
      browser.evaluate("document.querySelector('[name=mapped][value=all]').click(); document.querySelector('[data-section=\"arena-0\"]').click()")
      refute_equal red, colour_of(browser, full)
    end
  end

  def test_texts_of_the_process_are_never_markup
    process = Synthetic.new(name: HOSTILE, arena_name: HOSTILE)
    process.heap(arena: 1, start: MapHelper::ARENA, pages: 50)
    process.map(start: MapHelper::LIBRARY, pages: 5, use: HOSTILE, path: HOSTILE, label: HOSTILE)
    process.problem(HOSTILE)
    with_page(Culet::Scope::Builder.new(process.to_s).call) do |browser|
      browser.evaluate("look(#{MapHelper::LIBRARY})")
      browser.mouse("mouseMoved", *MIDDLE)
      found = browser.evaluate("({ pwned: window.pwned === undefined, images: document.images.length, " \
                               "heading: document.querySelector('h1').textContent, title: document.title, " \
                               "tip: document.getElementById('tip').innerText, " \
                               "problem: document.querySelector('[data-part=problems]').textContent, " \
                               "scripts: document.querySelectorAll('script:not([type])').length })")
      assert_equal [true, 0, 1], found.values_at("pwned", "images", "scripts")
      %w[heading title tip problem].each { |part| assert_includes found[part], HOSTILE, part }
    end
  end

  def test_a_browser_without_decompression_says_which_one_to_use
    with_page(MapHelper.snapshot, before: "delete window.DecompressionStream;", state: "failed") do |browser|
      assert_equal "undefined", browser.evaluate("typeof DecompressionStream")
      refute browser.evaluate("document.getElementById('failure').hidden")
      assert_equal "The map cannot be drawn: this browser has no DecompressionStream; use Chrome 80, Firefox 113, Safari 16.4 or newer.",
                   browser.evaluate("document.getElementById('failure').textContent")
    end
  end

  def test_a_series_is_played
    series = [100, 300, 700].map { |pages| MapHelper.snapshot(pages: pages) }
    with_page(*series) do |browser|
      assert_equal false, browser.evaluate("document.getElementById('player').hidden")
      browser.evaluate("culetMap.player.go(2)")
      assert_equal Culet::Map::Totals.new(series.last).to_h["used_bytes"],
                   browser.evaluate("Number(document.querySelector('[data-key=used_bytes]').dataset.bytes)")
      browser.evaluate("document.querySelector('#player button').click()")
      browser.wait("culetMap.player.number === 2 && !culetMap.player.timer")
      assert_equal "play", browser.evaluate("document.querySelector('#player button').textContent")
    end
  end

  def test_what_changed_since_the_first_snapshot
    moment = lambda do |runs, bits|
      process = Synthetic.new
      mapping = process.map(start: MapHelper::HEAP, pages: 6, bits: bits, use: "malloc")
      process.part(arena: 0, kind: "main", start: MapHelper::HEAP, bytes: 6 * PAGE, mapping: mapping, runs: runs)
      Culet::Scope::Builder.new(process.to_s).call
    end
    before = moment.call([6, 1024], [5, 5, 5, 0, 5, 0])
    after = moment.call([1, 1024, 1, 2048, 1, 512, 3, 1024], [5, 5, 5, 5, 0, 0])
    with_page(before, after) do |browser|
      browser.evaluate("culetMap.player.go(1).then(function () { document.getElementById('compare').click(); })")
      expected = %w[#c9c9c4 #e69f00 #56b4e9 #d55e00 #0072b2 #ffffff]
      assert_equal expected, Array.new(6) { |page| colour_of(browser, MapHelper::HEAP + (page * PAGE)) }
      bytes = browser.evaluate("Object.fromEntries(Array.from(document.querySelectorAll('[data-change]'))" \
                               ".map(function (one) { return [one.dataset.change, Number(one.dataset.bytes)]; }))")
      assert_equal %w[absent same come fuller emptier gone].to_h { |key| [key, PAGE] }, bytes
      browser.evaluate("document.getElementById('compare').click()")
      refute_includes expected.first(5), colour_of(browser, MapHelper::HEAP)
    end
  end

  def test_it_fits_a_phone
    with_page(MapHelper.snapshot, MapHelper.snapshot(pages: 300)) do |browser|
      browser.window(390, 844, ratio: 2, mobile: true)
      browser.wait("document.documentElement.scrollWidth <= 390 && culetMap.view.width === 780")
      assert_equal hex(:stack, 1), colour_of(browser, MapHelper::STACK + (2040 * PAGE))
    end
  end

  # Dark where the reader's system is, canvas and all, also when that changes while the page is open.
  def test_dark
    snapshot = MapHelper.snapshot
    with_page(snapshot) do |browser, path|
      free = find_page(snapshot) { |used, bits| used.zero? && bits == 5 }
      returned = find_page(snapshot) { |_, bits| bits.zero? }
      addresses = [free, returned, MapHelper::STACK + (2040 * PAGE), MapHelper::LIBRARY]
      light = addresses.map { |address| colour_of(browser, address) }
      browser.colors("dark")
      browser.evaluate("new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 50); }); })")
      kinds = %i[heap returned stack file].map { |kind| Culet::Map::Palette::KINDS[Culet::Map::Palette::INDEX.fetch(kind)] }
      assert_equal kinds.map { |kind| kind.shaded? ? kind.dark_empty : kind.dark_full }, addresses.map { |address| colour_of(browser, address) }
      assert_operator canvas_light(browser), :<, 0.35
      browser.colors("light")
      browser.evaluate("new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 50); }); })")
      assert_equal light, addresses.map { |address| colour_of(browser, address) }
      assert_operator canvas_light(browser), :>, 0.6
      assert_layout(path, ready: "document.documentElement.dataset.map")
      browser.requests.clear << "file://#{path}"
    end
  end

  # Each kind is told from those beside it, in dark as in light.
  def test_dark_colours_differ
    dark = Culet::Map::Palette::KINDS.flat_map { |kind| [kind.dark_full, kind.dark_empty] }.uniq
    dark.combination(2) do |one, other|
      distance = Math.sqrt(Culet::Map::Palette.rgb(one).zip(Culet::Map::Palette.rgb(other)).sum { |a, b| (a - b)**2 })
      assert_operator distance, :>, 30, [one, other]
    end
  end

  # A page of what changed opens with that; a series opens with its first.
  def test_which_picture_it_opens_with
    series = [200, 260].map { |pages| MapHelper.snapshot(pages: pages) }
    { true => [1, true, true], false => [0, false, false] }.each do |changes, expected|
      Dir.mktmpdir do |folder|
        File.write("#{folder}/map.html", Culet::Map::Html.new(series, changes: changes).to_s)
        Browser.use do |browser|
          assert_equal "drawn", browser.open("#{folder}/map.html")
          assert_equal expected, browser.evaluate("[culetMap.player.number, document.getElementById('compare').checked, " \
                                                  "!document.querySelector('[aria-label=Changes]').hidden]")
          assert_equal changes, browser.evaluate("(culetMap.view.draw(), !!culetMap.view.picture.changes)")
          assert_empty browser.complaints
        end
      end
    end
  end

  # Mean of what is on the canvas, from 0 (black) to 1.
  def canvas_light(browser)
    browser.evaluate("(function () { var view = culetMap.view, data, sum = 0; view.draw(); data = view.image.data; " \
                     "for (var at = 0; at < data.length; at += 4) { sum += data[at] + data[at + 1] + data[at + 2]; } " \
                     "return sum / data.length / 255 * 4 / 3; }())")
  end

  def test_a_page_that_would_be_too_large_leaves_out_blocks_and_says_so
    with_page(MapHelper.snapshot, largest_bytes: 50_000) do |browser|
      assert_equal false, browser.evaluate("culetMap.view.picture.blocks.any")
      assert_includes browser.evaluate("document.querySelector('aside').textContent"), "Omitted to limit the size of this page: single blocks, Ruby's slots."
    end
  end

  def test_a_long_series_is_thinned_to_its_first_its_last_and_some_between
    series = Array.new(12) { |number| MapHelper.snapshot(pages: 200 + (number * 10)) }
    with_page(*series, largest_bytes: 60_000) do |browser, path|
      count = browser.evaluate("document.querySelectorAll('[id^=facts-]').length")
      assert_includes 2..6, count
      assert_includes File.read(path), "#{12 - count} of 12 snapshots."
      browser.evaluate("culetMap.player.go(#{count - 1})")
      assert_equal Culet::Map::Totals.new(series.last).to_h["used_bytes"],
                   browser.evaluate("Number(document.querySelector('[data-key=used_bytes]').dataset.bytes)")
    end
  end

  def test_ten_gigabytes_are_drawn_from_less_than_ten_megabytes
    skip "takes a minute; bin/test --all runs it" unless all_tests?

    process = Synthetic.new
    process.heap(arena: 0, start: MapHelper::HEAP, pages: 1_000_000, kind: "main")
    100.times { |index| process.heap(arena: 1 + (index / 2), start: MapHelper::ARENA + (index * (64 << 20)), pages: 16_000, chunks: index < 60) }
    snapshot = Culet::Scope::Builder.new(process.to_s).call
    with_page(snapshot) do |browser, path|
      assert_operator File.size(path), :<=, 10_000_000
      assert_equal 2_600_000, browser.evaluate("culetMap.view.picture.size - tally().gap / #{PAGE}")
      assert_equal Culet::Map::Totals.new(snapshot).to_h["used_bytes"], browser.evaluate("tally().used")
      colours = browser.evaluate("(culetMap.view.draw(), new Set(culetMap.view.pixels).size)")
      assert_operator colours, :>, 100
    end
  end
end
