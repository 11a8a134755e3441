# frozen_string_literal: true

require_relative "requires_helper"
require "map/in_browser"

# The flame graph in a real browser, without a network.
class RequiresFlameBrowserTest < Minitest::Test
  include RequiresHelper
  include InBrowser

  READY = "document.documentElement.dataset.requires"

  def test_the_page
    write("outer.rb" => "require 'inner'; require 'big'; HELD = '</script><b>' * 1000",
          "inner.rb" => "begin; require 'absent'; rescue LoadError; end", "big.rb" => "BIG = Array.new(5_000) { |one| one.to_s * 30 }")
    write_page(record(*ruby("-e", "require 'outer'")), "inner.rb" => 1.0, "big.rb" => 0.02, "outer.rb" => 0.05)
    showing(path("page.html"), ready: READY) do |browser|
      assert_operator width(browser, "inner"), :>, width(browser, "big")
      assert_operator width(browser, "outer"), :>, width(browser, "inner")
      assert_equal [1, "absent [LoadError]"], of(browser, "absent", "[graph.picture.failed[node], graph.picture.name(node)]")

      choose(browser, 2)
      assert_operator width(browser, "big"), :>, width(browser, "inner")

      whole = width(browser, "all requires")
      browser.drag(*[middle(browser, "big")] * 2)
      assert_in_delta whole, width(browser, "big"), 2
      assert_match(/big\.rbthe program.*memory retained/, browser.text("tip"))
      assert_equal ["all requires", "outer"], browser.texts("#path button")
      browser.key("Escape")
      assert_operator width(browser, "big"), :<, whole
      choose(browser, 0)
      browser.fill("find", "inner")
      assert_equal 1, browser.evaluate("culetRequires.graph.found.reduce(function (sum, one) { return sum + one; })")
      assert_match(/found: 1,0\d\d ms, \d\d\.\d %/, browser.text("matches"))
      assert_match(/the program/, browser.evaluate("document.querySelector('#gems tbody').textContent"))
      assert_equal browser.evaluate("document.querySelector('h1 + p').textContent")[/\d+(?= files)/].to_i,
                   browser.texts("#gems tbody td:nth-child(2)").sum(&:to_i)
    end
  end

  def test_a_program_that_requires_nothing
    write_page(record(*ruby("-e", "1")), {})
    showing(path("page.html"), ready: READY) do |browser|
      assert_equal "drawn", browser.evaluate(READY)
      assert_equal ["time"], browser.texts("#figure option")
    end
  end

  # Fifteen libraries that stand side by side and below one another: no two neighbours look alike.
  def test_neighbours_have_colours_that_differ
    gems = Array.new(15) { |number| "gems/lib#{number}-1.0/lib/lib#{number}" }
    gems.each_with_index { |name, number| write("#{name}.rb" => ("require '#{path(gems[number - 3])}'" if number % 3 == 2).to_s) }
    write_page(record(*ruby("-e", gems.map { |name| "require '#{path(name)}'" }.reverse.join(";"))),
               gems.each_with_index.to_h { |name, number| ["#{File.basename(name)}.rb", 0.003 * (number + 1)] })
    showing(path("page.html"), ready: READY) do |browser|
      [0, 2].each do |figure|
        choose(browser, figure)
        boxes = browser.evaluate(BOXES)
        assert_operator boxes.map { |one| one["gem"] }.uniq.size, :>=, 15
        adjacent(boxes).each do |one, other|
          next if one["gem"] == other["gem"]

          assert_operator distance(one["colour"], other["colour"]), :>, 40, [one, other].inspect
        end
      end
      assert_layout(path("page.html"), ready: READY)
    end
  end

  # All boxes below the one of all requires that are wide enough to see.
  BOXES = <<~JAVASCRIPT
    (function () {
      var graph = culetRequires.graph, requires = culetRequires.requires;
      return Array.from(graph.picture.weights.keys()).slice(1).filter(function (node) { return graph.extent(node)[1] > 0.6; }).map(function (node) {
        var extent = graph.extent(node), colour = graph.colours.of(graph.picture, node);
        return { gem: requires.gems[requires.gem[node]], colour: colour.match(/[0-9a-f]{2}/g).map(function (part) { return parseInt(part, 16); }),
                 left: extent[0], right: extent[0] + extent[1], level: graph.picture.depths[node] }; });
    }())
  JAVASCRIPT

  # @return [Array<Array(Hash, Hash)>] boxes that touch: in a row, or in two rows that follow one another
  def adjacent(boxes)
    boxes.combination(2).select do |one, other|
      beside = one["level"] == other["level"] && ((one["right"] - other["left"]).abs < 1 || (other["right"] - one["left"]).abs < 1)
      below = (one["level"] - other["level"]).abs == 1 && [one["left"], other["left"]].max < [one["right"], other["right"]].min
      beside || below
    end
  end

  # Of red, green and blue from 0 to 255.
  def distance(one, other) = Math.sqrt(one.zip(other).sum { |a, b| (a - b)**2 })

  private

  # Writes the page of a document with other times, on which the widths do not depend on the machine.
  #
  # @param seconds [Hash{String => Float}] by the name of a file, without those that it requires
  def write_page(document, seconds)
    features = document["features"]
    features.each { |one| one["self_seconds"] = one["self_cpu_seconds"] = seconds.fetch(File.basename(one["path"].to_s), 0.001) }
    features.each_with_index { |one, number| one["total_seconds"] = one["total_cpu_seconds"] = total(features, number) }
    document["total_seconds"] = features.reject { |one| one["parent"] }.sum { |one| one["total_seconds"] }
    File.write(path("report.json"), JSON.generate(document))
    assert_culet("requires", "--html", path("page.html"), path("report.json"))
  end

  def total(features, number)
    below = features.each_index.select { |other| features[other]["parent"] == number }
    features[number]["self_seconds"] + below.sum { |other| total(features, other) }
  end

  # @param figure [Integer] which of the page's list is the width
  def choose(browser, figure) = browser.fill("figure", figure, event: "change")

  NODE = "requires.name.findIndex(function (one) { return one.split('/').pop() === %p; })"
  private_constant :NODE

  # @param expression [String] of `graph`, `requires` and `node`, the number of a file
  def of(browser, name, expression)
    node = format(NODE, name)
    browser.evaluate("(function () { var graph = culetRequires.graph, requires = culetRequires.requires, node = #{node}; return #{expression}; }())")
  end

  # @return [Float] pixels
  def width(browser, name) = of(browser, name, "graph.extent(node)[1]")

  # Where a box is in the window.
  def middle(browser, name)
    left, width, top = of(browser, name, "graph.extent(node).concat(graph.top(graph.picture.depths[node]))")
    edges = browser.evaluate("(function () { var box = culetRequires.graph.canvas.getBoundingClientRect(); return [box.left, box.top]; }())")
    [edges[0] + left + (width / 2), edges[1] + top + 10]
  end
end
