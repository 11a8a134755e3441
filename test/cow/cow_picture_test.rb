# frozen_string_literal: true

require_relative "cow_helper"
require_relative "../map/browser"

# `culet cow --html`, opened in a real browser.
class CowPictureTest < Minitest::Test
  include CowHelper

  def setup
    skip "no browser to open the page with; install one with `apt-get install chromium`" unless Browser::PROGRAM
  end

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
      browser.evaluate("document.querySelector('[name=owner][value=unshared]').click()")
      assert_equal "unshared", browser.evaluate("culetMap.panel.filter.owner")
    end
  end

  # The map of one process alone has nothing of it.
  def test_a_map_has_no_such_part
    with_family(*RUBY, "-e", WAITING) do |pid|
      in_directory do |directory|
        _, err, status = run_culet("map", pid.to_s, "--html", "#{directory}/map.html", env: NEUTRAL)
        assert_predicate status, :success?, err
        Browser.use do |browser|
          assert_equal "drawn", browser.open("#{directory}/map.html")
          assert browser.evaluate("document.querySelector('[data-part=sharing]').closest('section').hidden")
          assert browser.evaluate("document.querySelector('[data-owner=unshared]').hidden")
        end
      end
    end
  end

  private

  # @yieldparam browser [Browser] with the page of a family
  # @yieldparam document [Hash] the same reading as JSON
  def with_page
    with_family(*RUBY, "-e", WORKERS) do |pid|
      in_directory do |directory|
        path = "#{directory}/cow.html"
        out, err, status = run_culet("cow", pid.to_s, "--html", path, "--json", env: NEUTRAL)
        assert_predicate status, :success?, err
        assert_equal "culet: wrote #{path}\n", err
        Browser.use do |browser|
          assert_equal "drawn", browser.open(path)
          yield browser, JSON.parse(out)
          assert_equal ["file://#{path}"], browser.requests
          assert_empty browser.complaints
        end
      end
    end
  end

  def pid_shown(browser) = browser.evaluate("culetMap.panel.picture.facts.process.pid")

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
