# frozen_string_literal: true

require_relative "requires_helper"
require "map/layout"

# The flame graph in a real browser, without a network.
class RequiresFlameBrowserTest < Minitest::Test
  include RequiresHelper
  include Layout

  def test_the_page
    skip "there is no Chromium" unless Browser::PROGRAM
    write("outer.rb" => "require 'inner'; require 'big'; sleep 0.05; HELD = '</script><b>' * 1000",
          "inner.rb" => "sleep 1", "big.rb" => "BIG = Array.new(5_000) { |one| one.to_s * 30 }")
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
      assert_match(/big\.rb.*memory retained/, browser.evaluate("document.getElementById('told').textContent"))
      browser.key("Escape")
      choose(browser, 0)
      browser.evaluate("(function () { var one = document.getElementById('find'); one.value = 'inner'; one.dispatchEvent(new Event('input')); }())")
      assert_equal 1, browser.evaluate("document.querySelectorAll('#graph .found').length")
      assert_match(/the program/, browser.evaluate("document.querySelector('#gems tbody').textContent"))
    end
  end

  # Fifteen libraries that stand side by side and below one another: no two neighbours look alike.
  def test_neighbours_have_colours_that_differ
    skip "there is no Chromium" unless Browser::PROGRAM
    gems = Array.new(15) { |number| "gems/lib#{number}-1.0/lib/lib#{number}" }
    gems.each_with_index { |name, number| write("#{name}.rb" => "sleep #{0.003 * (number + 1)}#{"\nrequire '#{path(gems[number - 3])}'" if number % 3 == 2}") }
    record(*ruby("-e", gems.map { |name| "require '#{path(name)}'" }.reverse.join(";")), options: ["--html", path("page.html")])
    Browser.use do |browser|
      assert_equal "drawn", browser.open(path("page.html"), ready: "document.documentElement.dataset.flame")
      [0, 2].each do |figure|
        choose(browser, figure)
        boxes = browser.evaluate(BOXES)
        assert_operator boxes.map { |one| one["gem"] }.uniq.size, :>=, 15
        adjacent(boxes).each do |one, other|
          next if one["gem"] == other["gem"]

          assert_operator distance(one["colour"], other["colour"]), :>, 40, [one, other].inspect
        end
      end
      assert_layout(path("page.html"), ready: "document.documentElement.dataset.flame")
    end
  end

  BOXES = <<~JAVASCRIPT
    Array.from(document.querySelectorAll("#graph div")).filter(function (one) { return one.dataset.number !== "-1"; }).map(function (one) {
      var data = JSON.parse(document.getElementById("data").textContent);
      return { gem: data.gems[data.rows[one.dataset.number][2]], colour: getComputedStyle(one).backgroundColor.match(/\\d+/g).map(Number),
               left: parseFloat(one.style.left), right: parseFloat(one.style.left) + parseFloat(one.style.width), top: parseFloat(one.style.top) }; })
  JAVASCRIPT

  # @return [Array<Array(Hash, Hash)>] boxes that touch: in a row, or in two rows that follow one another
  def adjacent(boxes)
    boxes.combination(2).select do |one, other|
      beside = one["top"] == other["top"] && ((one["right"] - other["left"]).abs < 1 || (other["right"] - one["left"]).abs < 1)
      below = (one["top"] - other["top"]).abs.between?(1, 18) && [one["left"], other["left"]].max < [one["right"], other["right"]].min
      beside || below
    end
  end

  # Of red, green and blue from 0 to 255.
  def distance(one, other) = Math.sqrt(one.zip(other).sum { |a, b| (a - b)**2 })

  private

  # @param figure [Integer] which of the page's list is the width
  def choose(browser, figure)
    browser.evaluate("(function () { var one = document.getElementById('figure'); one.value = #{figure}; one.dispatchEvent(new Event('change')); }())")
  end

  def bar(name) = "Array.from(document.querySelectorAll('#graph div')).find(function (one) { return one.textContent.startsWith(#{name.dump} + ' '); })"

  # @return [Float] pixels; 0 where there is no such bar, or it is too narrow for words
  def width(browser, name) = browser.evaluate("(function () { var one = #{bar(name)}; return one ? parseFloat(one.style.width) : 0; }())")
end
