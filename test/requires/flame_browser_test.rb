# frozen_string_literal: true

require_relative "requires_helper"
require "map/browser"

# The flame graph in a real browser, without a network.
class RequiresFlameBrowserTest < Minitest::Test
  include RequiresHelper

  def test_the_page
    skip "there is no Chromium" unless Browser::PROGRAM
    write("outer.rb" => "require 'inner'; require 'big'; sleep 0.05; HELD = '</script><b>' * 1000", "inner.rb" => "sleep 1", "big.rb" => "BIG = Array.new(5_000) { |one| one.to_s * 30 }")
    record(*ruby("-e", "require 'outer'"), options: ["--html", path("page.html")])
    Browser.use do |browser|
      assert_equal "drawn", browser.open(path("page.html"), ready: "document.documentElement.dataset.flame")
      assert_equal [["file://#{path("page.html")}"], []], [browser.requests, browser.complaints]
      assert_operator width(browser, "inner"), :>, width(browser, "big")
      assert_operator width(browser, "outer"), :>, width(browser, "inner")

      choose(browser, 2)
      assert_operator width(browser, "big"), :>, width(browser, "inner")

      whole = width(browser, "all requires")
      browser.evaluate("(#{bar("big")}).click()")
      assert_in_delta whole, width(browser, "big"), 2
      assert_match(/big\.rb.*memory left at the end/, browser.evaluate("document.getElementById('told').textContent"))
      browser.key("Escape")
      choose(browser, 0)
      browser.evaluate("(function () { var one = document.getElementById('find'); one.value = 'inner'; one.dispatchEvent(new Event('input')); }())")
      assert_equal 1, browser.evaluate("document.querySelectorAll('#graph .found').length")
      assert_match(/the program/, browser.evaluate("document.querySelector('#gems tbody').textContent"))
    end
  end

  private

  # @param figure [Integer] which of the page's list is the width
  def choose(browser, figure)
    browser.evaluate("(function () { var one = document.getElementById('figure'); one.value = #{figure}; one.dispatchEvent(new Event('change')); }())")
  end

  def bar(name) = "Array.from(document.querySelectorAll('#graph div')).find(function (one) { return one.textContent.startsWith(#{name.dump} + ' '); })"

  # @return [Float] pixels; 0 where there is no such bar, or it is too narrow for words
  def width(browser, name) = browser.evaluate("(function () { var one = #{bar(name)}; return one ? parseFloat(one.style.width) : 0; }())")
end
