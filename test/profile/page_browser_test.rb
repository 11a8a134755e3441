# frozen_string_literal: true

require_relative "page_helper"
require "map/in_browser"

# The page of a profile in a real browser, without a network.
class ProfilePageBrowserTest < Minitest::Test
  include ProfilePageHelper
  include InBrowser

  READY = "document.documentElement.dataset.profile"

  def test_the_graph_shows_the_view
    with_page(small) do |browser|
      assert_equal %w[all main Cache#store Hash#[]= st_insert Cache#value String#* String ruby_init], names(browser)
      assert_in_delta 26.7e6, total(browser), 0.1e6
      view(browser, "allocated")
      assert_equal %w[main Cache#value String#* String], names(browser) - ["all"]
      view(browser, "peak")
      assert_equal [0, false], browser.evaluate("[culetProfile.graph.drawn, document.getElementById('nothing').hidden]")
    end
  end

  def test_a_view_without_samples_shows_no_controls_of_the_graph
    with_page(Made.new({ allocated: small.sites(:allocated) })) do |browser|
      visible = "Array.from(document.querySelectorAll('#path, #graph, .below'), function (one) { return one.getClientRects().length > 0; })"
      assert_equal [false] * 3, browser.evaluate(visible)
      view(browser, "allocated")
      assert_equal [true] * 3, browser.evaluate(visible)
    end
  end

  # The intervals that the script computes are those of the profile.
  def test_totals_agree_with_the_profile
    data = large(400)
    with_page(data) do |browser|
      Culet::Profile::PageData::VIEWS.each do |key|
        view(browser, key)
        bytes, low, high = browser.evaluate("(function () { var sum = culetProfile.graph.picture.sums.at(0); return [sum.bytes].concat(sum.interval(culetProfile.profile.distance)); }())")
        expected = data.total(key)
        [[expected.bytes, bytes], [expected.low_bytes, low], [expected.high_bytes, high]].each { |one, other| assert_in_epsilon one, other, 1e-3 }
      end
    end
  end

  # Few samples, many, and blocks that are larger than any distance.
  def test_intervals_are_those_of_estimates
    with_page(small) do |browser|
      [[1, 1.0, 1.0], [5, 5.0, 5.0], [20, 900.0, 9e3], [30, 30.0, 30.0], [31, 31.0, 31.0], [2000, 1e9, 1e12], [1, 9e8, 0.0]].each do |samples, bytes, variance|
        found = browser.evaluate("(function () { var S = culetProfile.graph.picture.sums.at(0).constructor; return new S(#{bytes}, 0, #{samples}, #{variance}).interval(1); }())")
        expected = Estimate.new(samples, 0, bytes, variance)
        [expected.low_bytes, expected.high_bytes].zip(found).each { |one, other| assert_in_delta one, other, 1e-9 * bytes }
      end
    end
  end

  def test_zoom_by_click_and_back_by_path_and_key
    with_page(small) do |browser|
      click(browser, "Cache#value")
      assert_equal "Cache#value", zoomed(browser)
      assert_equal ["all", "main:12", "Cache#value:8"], browser.texts("#path li")
      assert_equal(box(browser, "all")["width"], box(browser, "Cache#value")["width"])
      browser.evaluate("document.querySelectorAll('#path button')[1].click()")
      assert_equal "main", zoomed(browser)
      browser.key("Escape")
      assert_equal "all", zoomed(browser)
      # The last one of a row: its neighbours are left of it.
      boxes = %w[Cache#store Cache#value].map { |name| box(browser, name) }
      assert_in_delta boxes[0]["left"] + boxes[0]["width"], boxes[1]["left"], 1
    end
  end

  def test_a_deep_zoom_keeps_the_nearest_callers
    with_page(large(50)) do |browser|
      node = browser.evaluate("(function () { var p = culetProfile.graph.picture, n = 0; while (p.childrenOf(n).length) n = p.childrenOf(n)[0]; culetProfile.graph.zoom(n); return n; }())")
      depth = browser.evaluate("culetProfile.graph.picture.depths[#{node}]")
      assert_operator depth, :>, 15
      assert_equal 5, browser.evaluate("culetProfile.graph.levels")
      assert_equal node, at_row(browser, 4)
      assert_equal 0, at_row(browser, 0)
      assert_equal depth - 3, browser.evaluate("culetProfile.graph.picture.depths[#{at_row(browser, 1)}]")
      assert_match(/… \d+ more …/, browser.text("path"))
    end
  end

  def test_keys_select_and_zoom
    with_page(small) do |browser|
      browser.evaluate("document.querySelector('#graph').focus()")
      %w[ArrowDown ArrowDown ArrowRight].each { |name| browser.key(name) }
      assert_match(/\ACache#value:8\n.*leak\.rb:8\napplication\n4\.72 MB \(.* to .* MB\), 95 % interval; 17\.6 %\n.*9 samples/, browser.text("told"))
      browser.key("Enter")
      assert_equal "Cache#value", zoomed(browser)
    end
  end

  def test_the_tip_has_the_figures
    with_page(small) do |browser|
      place = box(browser, "Cache#store")
      browser.mouse("mouseMoved", place["x"], place["y"])
      assert_match(%r{\ACache#store:4/home/me/leak\.rb:4application21\.0 MB \(14\.\d to 27\.\d MB\).*78\.4 %327,\d+ blocks from 40 samples}, browser.text("tip"))
      browser.mouse("mouseMoved", 5, 5)
      browser.wait("document.getElementById('tip').hidden")
    end
  end

  # Recursion and callers of a found frame count once.
  def test_search_adds_up_what_it_finds
    again = frame("Tree#walk", "/app/tree.rb", 3)
    data = Made.new({ live: [site([again, frame("Tree#each", "/app/tree.rb", 9), again, frame("main", "/app/x.rb", 1)], 30), site([frame("main", "/app/x.rb", 1)], 10)] })
    with_page(data) do |browser|
      browser.fill("find", "TREE")
      assert_match(/15\.7 MB \(.*\), 75\.0 %/, browser.text("matches"))
      assert_equal 3, browser.evaluate("culetProfile.graph.found.reduce(function (a, b) { return a + b; })")
      browser.fill("find", "absent")
      assert_equal "no match", browser.text("matches")
      browser.key("Escape")
      assert_equal [nil, ""], browser.evaluate("[culetProfile.graph.found, document.getElementById('matches').textContent]")
    end
  end

  def test_native_frames_and_lines_fold
    frames = ->(line) { [frame("st_insert", library: "libruby.so"), frame("A#b", "/app/a.rb", line)] }
    with_page(Made.new({ live: [site(frames.call(1), 5), site(frames.call(2), 5)] })) do |browser|
      assert_equal 5, names(browser).size
      browser.evaluate("document.getElementById('lines').click()")
      assert_equal %w[all A#b st_insert], names(browser)
      browser.evaluate("document.getElementById('native').click()")
      assert_equal %w[all A#b], names(browser)
      assert_in_delta 10 * 524_288, browser.evaluate("culetProfile.graph.picture.sums.own[1]"), 10_000
    end
  end

  def test_a_row_of_a_group_filters_the_page
    with_page(small) do |browser|
      row = "Array.from(document.querySelectorAll('#groups [aria-label=\"By class\"] button')).find(function (one) { return one.textContent === 'String'; })"
      browser.evaluate("#{row}.click()")
      assert_equal %w[all main Cache#value String#* String], names(browser)
      assert_match(/Only class: String×4\.72 MB/, browser.text("chips"))
      assert_equal "true", browser.evaluate("#{row}.getAttribute('aria-pressed')")
      browser.evaluate("document.querySelector('.chip').click()")
      assert_equal 9, names(browser).size
    end
  end

  def test_groups_by_label
    with_page(large(200)) do |browser|
      assert_equal ["By line", "By gem", "By class", "By library", "By endpoint", "By job"], browser.texts("#groups h2")
      before = browser.evaluate("document.querySelectorAll('#groups section')[0].querySelectorAll('tbody tr').length")
      browser.evaluate("document.querySelector('#groups .quiet').click()")
      assert_equal 10, before
      assert_operator browser.evaluate("document.querySelectorAll('#groups section')[0].querySelectorAll('tbody tr').length"), :>, 10
    end
  end

  def test_a_difference
    same, more, less = %w[same more less].map { |name| frame(name, "/app/#{name}.rb", 1) }
    gone = frame("gone", "/app/gone.rb", 1)
    before = Made.new({ live: [site([same], 100), site([more], 20), site([less], 200), site([gone], 50)] })
    now = Made.new({ live: [site([same], 105), site([more], 200), site([less], 40)] })
    with_page(now, base: before) do |browser|
      assert_equal %w[all more same less], names(browser)
      colours = %w[more same less].to_h { |name| [name, pixel(browser, name)] }
      assert_operator colours["more"][0], :>, colours["more"][2] + 60, "red"
      assert_operator colours["less"][2], :>, colours["less"][0] + 60, "blue"
      assert_operator colours["same"].minmax.reduce(:-).abs, :<, 12, "grey"
      rows = table(browser, "#groups tbody")
      assert_equal ["+94.4 MB", "−83.9 MB", "−26.2 MB"], %w[more less gone].map { |name| rows.find { |row| row[0].include?("#{name}.rb") }[3] }
      place = box(browser, "less")
      browser.mouse("mouseMoved", place["x"], place["y"])
      assert_match(/−83\.9 MB \(−.* to −.* MB\) since the earlier profile \(105 MB\)/, browser.text("tip"))
      browser.mouse("mouseMoved", *box(browser, "same").values_at("x", "y"))
      assert_match(/the change is within the interval/, browser.text("tip"))
    end
  end

  def test_hostile_names_are_text
    name = %(</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u2028)
    data = Made.new({ live: [site([frame(name, "/app/#{name}.rb", 1, gem: name), frame("y", library: name)], 9, class_name: name, labels: { name => name })] }, name: name)
    with_page(data, base: data) do |browser|
      browser.mouse("mouseMoved", *box(browser, name).values_at("x", "y"))
      browser.evaluate("document.querySelector('#groups tbody button').click()")
      assert_equal [false, 0], browser.evaluate("[window.pwned === 1, document.images.length]")
      assert_includes browser.evaluate("document.querySelector('h1').textContent"), "<script>window.pwned=1</script>"
    end
  end

  # Boxes that cannot be seen are not drawn, and those that can are all of the row's width.
  def test_a_huge_profile
    sites = all_tests? ? 10_000 : 3_000
    with_page(large(sites)) do |browser|
      nodes, drawn, levels = browser.evaluate("[culetProfile.graph.picture.tree.size, culetProfile.graph.drawn, culetProfile.graph.levels]")
      assert_operator nodes, :>, 5 * sites
      assert_operator drawn, :<, 2 * Browser::WINDOW[0] * levels
    end
  end

  def test_it_fits_narrow_and_wide_windows_in_light_and_dark
    [nil, large(300, growth: 2)].each do |base|
      Dir.mktmpdir do |folder|
        path = File.join(folder, "profile.html")
        File.write(path, html(large(300), base))
        assert_layout(path, ready: READY)
      end
    end
  end

  def test_the_canvas_follows_the_theme
    with_page(small) do |browser|
      light = pixel(browser, "Cache#store")
      browser.colors("dark")
      browser.wait("culetProfile.colours.paper === getComputedStyle(document.documentElement).getPropertyValue('--paper').trim() && matchMedia('(prefers-color-scheme: dark)').matches")
      refute_equal light, pixel(browser, "Cache#store")
    end
  end

  private

  def html(data, base) = Culet::Profile::Html.new(data, view: :live, base: base).to_s

  def with_page(data, base: nil, &block) = showing(html(data, base), ready: READY, &block)

  # Names of all boxes with bytes, as they follow one another.
  def names(browser)
    browser.evaluate(<<~JAVASCRIPT)
      (function names(picture, node) {
        var below = Array.from(picture.childrenOf(node)).flatMap(function (child) { return names(picture, child); });
        return picture.weights[node] > 0 ? [picture.name(node).replace(/:\\d+$/, "")].concat(below) : below;
      }(culetProfile.graph.picture, 0))
    JAVASCRIPT
  end

  # Where a box is: edges within the canvas, and its middle in the window.
  def box(browser, name)
    browser.evaluate(<<~JAVASCRIPT)
      (function () { var graph = culetProfile.graph, place = graph.canvas.getBoundingClientRect();
        var node = graph.picture.weights.findIndex(function (_, node) { return graph.picture.name(node).replace(/:\\d+$/, "") === #{JSON.generate(name)}; });
        var extent = graph.extent(node), top = graph.top(graph.picture.depths[node]);
        return { left: extent[0], width: extent[1], x: place.left + extent[0] + extent[1] / 2, y: place.top + top + 10, inner: [extent[0] + extent[1] / 2, top + 3] }; }())
    JAVASCRIPT
  end

  def click(browser, name)
    browser.evaluate("document.querySelector('#graph').scrollIntoView()")
    place = box(browser, name).values_at("x", "y")
    browser.drag(place, place)
  end

  # Red, green and blue that the canvas shows in a box.
  def pixel(browser, name)
    left, top = box(browser, name)["inner"]
    browser.evaluate(<<~JAVASCRIPT)
      (function () { var copy = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        copy.drawImage(culetProfile.graph.canvas, #{-left.round}, #{-top.round});
        return Array.from(copy.getImageData(0, 0, 1, 1).data.slice(0, 3)); }())
    JAVASCRIPT
  end

  def at_row(browser, row) = browser.evaluate("culetProfile.graph.at(10, #{(row * 20) + 5})")

  def zoomed(browser) = browser.evaluate("culetProfile.graph.picture.name(culetProfile.graph.zoomed)").sub(/:\d+\z/, "")

  def total(browser) = browser.evaluate("culetProfile.graph.picture.total")

  def view(browser, key) = browser.evaluate("document.querySelector('[name=view][value=#{key}]').click()")

  def table(browser, rows)
    browser.evaluate("Array.from(document.querySelectorAll('#{rows} tr'), function (row) { return Array.from(row.cells, function (cell) { return cell.textContent; }); })")
  end
end
