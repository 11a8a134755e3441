# frozen_string_literal: true

require_relative "strings_helper"
require "map/in_browser"

# The page opened in a real browser with no network to be had.
class StringsPageBrowserTest < Minitest::Test
  include StringsHelper
  include InBrowser

  HOSTILE = %(<script>window.pwned=1</script><img src=x onerror="window.pwned=1">]]></svg><svg onload="window.pwned=1">&amp;\u0000)

  # @yieldparam browser [Browser] with the page of a dump
  # @yieldparam findings [Culet::Strings::Findings]
  def with_page(text, **options)
    found = findings(text, **options)
    showing(Culet::Strings::Html.new(found, top: 50).to_s, ready: "'drawn'") { |browser| yield browser, found }
  end

  def test_what_strings_say_is_text
    site = { file: "/srv/<b>app</b>/\"x\".rb", line: 3 }
    with_page((line(0x10000, HOSTILE, **site) * 1) + line(0x10100, HOSTILE, **site) +
              line(0x10200, "prefix of #{HOSTILE}", frozen: true, **site)) do |browser, _|
      assert_equal [false, 0, 1], browser.evaluate("[window.pwned === 1, document.scripts.length, document.querySelectorAll('svg').length]")
      assert_includes browser.evaluate("document.querySelector('#groups').textContent"), "<script>window.pwned=1</script>"
      assert_includes browser.evaluate("document.body.textContent"), "/srv/<b>app</b>/"
    end
  end

  def test_the_picture_shows_who_goes_and_who_stays
    whole = "/srv/app/lib/library/concerns/of_the_whole_program.rb"
    with_page(line(0x10000, whole, frozen: true) + line(0x10100, whole[13..]) +
              dump(*["a text that is there five times, word for word"] * 5)) do |browser, found|
      assert_equal 2, found.groups.size
      words = browser.evaluate("Array.from(document.querySelectorAll('svg text')).map(function (one) { return one.textContent; })")
      assert_includes words, "5 equal strings, 435 bytes"
      assert_includes words, whole.inspect
      # An end stands below the end of what it could lie in.
      edges = browser.evaluate(<<~JAVASCRIPT)
        (function () {
          var whole = Array.from(document.querySelectorAll('svg text')).filter(function (one) { return one.textContent.indexOf("/srv/app") === 1; })[0].previousElementSibling.getBoundingClientRect();
          return Array.from(document.querySelectorAll('svg rect.goes')).map(function (one) { return Math.abs(one.getBoundingClientRect().right - whole.right) < 1; });
        }())
      JAVASCRIPT
      assert_equal 1, edges.count(true)
      figures = browser.evaluate("Array.from(document.querySelectorAll('svg text.gain')).map(function (one) { return one.textContent; })")
      assert_equal found.groups.size, figures.size
      assert_match(/348 bytes savable/, figures.join)
    end
  end

  def test_without_content_neither_page_nor_picture_has_any
    with_page(dump(*["the secret of the house"] * 9), content: false) do |browser, _|
      refute_includes browser.evaluate("document.documentElement.outerHTML"), "secret"
    end
  end

  def test_tables_and_colours
    texts = Array.new(12) { |number| "a text that is there five times, word for word: #{number}" }
    folder = new_folder
    path = File.join(folder, "strings.html")
    File.write(path, Culet::Strings::Html.new(findings(dump(*texts * 5)), top: 50).to_s)
    assert_layout(path, ready: "'drawn'")
    # The picture has a ground of its own.
    Browser.use do |browser|
      browser.colors("dark")
      browser.open(path, ready: "'drawn'")
      assert_equal "rgb(21, 23, 27)", browser.evaluate("getComputedStyle(document.querySelector('svg .paper')).fill")
    end
  end

  def test_it_fits_a_small_screen
    with_page(dump(*["a text that is there five times, word for word, and is longer than a small screen is wide"] * 5)) do |browser, _|
      browser.window(380, 800, mobile: true)
      assert_operator browser.evaluate("document.documentElement.scrollWidth"), :<=, 381
    end
  end
end
