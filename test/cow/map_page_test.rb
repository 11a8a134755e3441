# frozen_string_literal: true

require_relative "cow_helper"
require_relative "../map/in_browser"

# `culet cow --html`, opened in a real browser.
class CowPictureTest < Minitest::Test
  include CowHelper
  include InBrowser

  def test_the_page_shows_what_each_process_stopped_sharing
    with_page do |browser, document|
      document["processes"].each_with_index do |process, number|
        browser.evaluate("culetMap.player.go(#{number})") if number.positive?
        assert_includes browser.evaluate("document.getElementById('frame').textContent"), "process #{pid_shown(browser)}"
        shown = figures(browser)
        told = document["processes"].find { |one| one["pid"] == pid_shown(browser) }
        assert_equal told["unshared_bytes"], shown["unshared"]
        assert_in_delta told["fresh_bytes"], shown["fresh"], 0.01 * told["rss_bytes"]
        assert_equal process.keys, told.keys
      end
    end
  end

  def test_pages_are_coloured_by_it_until_that_is_switched_off
    with_page do |browser, _|
      browser.evaluate("culetMap.player.go(1)")
      assert_operator colours(browser).fetch("#d55e00", 0), :>, 100
      before = colours(browser)
      browser.evaluate("document.getElementById('by-sharing').click()")
      refute_equal before, colours(browser)
      browser.evaluate("document.querySelector('[name=mapped][value=unshared]').click()")
      assert_equal "unshared", browser.evaluate("culetMap.panel.filter.mapped")
    end
  end

  # What stands beside the map is what the document has: by use, and what was written.
  def test_tables
    with_page do |browser, document|
      worker = document["processes"].find { |one| one["writes"] }
      browser.evaluate("culetMap.player.go(#{number_of(browser, worker["pid"])})")
      rows = table(browser, "Writes to unshared pages")
      assert_equal worker.dig("writes", "categories").values.map { |one| one.values.reverse }.reject { |touched, _| touched.zero? }.sort, rows.values.sort
      assert_includes rows.keys, "contents of existing objects and blocks"
      strings = table(browser, "Objects on unshared pages").fetch("T_STRING")
      assert_equal worker.dig("writes", "objects", "T_STRING").values_at("old_bytes", "young_bytes", "made_bytes"), strings.first(3)
      assert browser.evaluate("!document.getElementById('curve')")
    end
  end

  # The tables stand across the page, none of them cut, and begin on the first screen.
  def test_tables_have_room
    with_page do |browser, document|
      worker = document["processes"].find { |one| one["writes"] }
      number = number_of(browser, worker["pid"])
      assert_layout(browser.requests.first.delete_prefix("file://"), ready: "document.documentElement.dataset.map") do |page|
        page.evaluate("culetMap.player.go(#{number})")
        assert_empty page.evaluate(FAULTS)
        inside, top, width, window = page.evaluate(<<~JAVASCRIPT)
          (function () {
            var one = document.getElementById('tables'), box = one.getBoundingClientRect();
            return [!!one.closest('aside'), box.top, box.width, [innerWidth, innerHeight]];
          }())
        JAVASCRIPT
        refute inside
        assert_operator width, :>=, window[0] - 1
        assert_operator top, :<, window[1] if window[0] >= ROOMY
      end
    end
  end

  # A family that was looked at for a while has a curve, which ends where its last sample does.
  def test_the_curve
    with_page("--every", "0.2", "--for", "1s") do |browser, document|
      last = document["samples"].last
      lines = browser.evaluate(<<~JAVASCRIPT)
        Object.fromEntries(Array.from(document.querySelectorAll('#curve li')).map(function (one) {
          return [one.querySelector('label').textContent, Number(one.querySelector('.figure').dataset.bytes)];
        }))
      JAVASCRIPT
      assert_equal last["total_pss_bytes"], lines.fetch("all processes (PSS)")
      workers = last["processes"].drop(1)
      assert_equal workers.sum { |one| one["shared_bytes"] }.fdiv(3).round, lines.fetch("average worker, shared")
      assert_equal workers.sum { |one| one["private_bytes"] }.fdiv(3).round, lines.fetch("average worker, private")
      workers.each { |one| assert_equal one["private_bytes"], lines.fetch("process #{one["pid"]}, private") }
      points = browser.evaluate("Array.from(document.querySelectorAll('#curve polyline')).map(function (one) { return one.points.length; })")
      assert_equal [document["samples"].size] * lines.size, points
      assert_match(/\ASharing over time; the first fork was \d+\.\d s before the first sample\z/,
                   browser.evaluate("document.querySelector('#curve h2').textContent"))
    end
  end

  # The map of one process alone has nothing of it.
  def test_a_map_has_no_such_part
    with_family(*RUBY, "-e", WAITING) do |pid|
      in_directory do |directory|
        assert_culet_success("map", pid.to_s, "--html", "#{directory}/map.html", env: NEUTRAL)
        Browser.use do |browser|
          assert_equal "drawn", browser.open("#{directory}/map.html")
          assert browser.evaluate("document.querySelector('[data-part=sharing]').closest('section').hidden")
          assert browser.evaluate("document.querySelector('[data-mapped=unshared]').hidden")
        end
      end
    end
  end

  private

  # @yieldparam browser [Browser] with the page of a family
  # @yieldparam document [Hash] the same reading as JSON
  def with_page(*words)
    with_family(*RUBY, "-e", WORKERS) do |pid|
      in_directory do |directory|
        path = "#{directory}/cow.html"
        out, err = assert_culet_success("cow", pid.to_s, "--html", path, "--json", *words, env: NEUTRAL)
        assert_equal "culet: wrote #{path}\n", err
        showing(path) { |browser| yield browser, JSON.parse(out) }
      end
    end
  end

  def pid_shown(browser) = browser.evaluate("culetMap.panel.picture.facts.process.pid")

  # Which of the page's processes that is.
  def number_of(browser, pid)
    (0..3).find do |number|
      browser.evaluate("culetMap.player.go(#{number})")
      pid_shown(browser) == pid
    end
  end

  # @return [Hash{String => Array<Integer>}] the rows of the table of that title: bytes
  def table(browser, title)
    browser.evaluate(<<~JAVASCRIPT)
      Object.fromEntries(Array.from(document.querySelectorAll(#{"section[aria-label=#{title.dump}] tbody tr".dump})).map(function (row) {
        return [row.querySelector("th").textContent, Array.from(row.querySelectorAll("td")).map(function (cell) { return Number(cell.dataset.bytes); })];
      }))
    JAVASCRIPT
  end

  def figures(browser)
    browser.evaluate("Object.fromEntries(Array.from(document.querySelectorAll('[data-sharing]')).map(function (one) { return [one.dataset.sharing, Number(one.dataset.bytes)]; }))")
  end

  # How many pixels of the picture have each colour.
  def colours(browser)
    browser.evaluate(<<~JAVASCRIPT)
      (function () {
        var view = culetMap.view, seen = {};
        view.draw();
        for (var at = 0, data = view.image.data; at < data.length; at += 4) {
          var colour = "#" + [data[at], data[at + 1], data[at + 2]].map(function (one) { return one.toString(16).padStart(2, "0"); }).join("");
          seen[colour] = (seen[colour] || 0) + 1;
        }
        return seen;
      }())
    JAVASCRIPT
  end
end
