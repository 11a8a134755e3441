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
      assert_equal [false, 0, 0], browser.evaluate("[window.pwned === 1, document.scripts.length, document.querySelectorAll('svg').length]")
      assert_includes browser.evaluate("document.querySelector('#groups').textContent"), "<script>window.pwned=1</script>"
      assert_includes browser.evaluate("document.body.textContent"), "/srv/<b>app</b>/"
    end
  end

  def test_without_content_the_page_has_none
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
  end

  def test_it_fits_a_small_screen
    with_page(dump(*["a text that is there five times, word for word, and is longer than a small screen is wide"] * 5)) do |browser, _|
      browser.window(380, 800, mobile: true)
      assert_operator browser.evaluate("document.documentElement.scrollWidth"), :<=, 381
    end
  end
end
