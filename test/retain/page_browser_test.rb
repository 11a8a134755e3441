# frozen_string_literal: true

require_relative "documents"
require "culet/tools/retain"
require "map/in_browser"

# The page of what is retained in a real browser, without a network.
class RetainPageBrowserTest < Minitest::Test
  include RetentionDocuments
  include InBrowser

  READY = "document.documentElement.dataset.retain"

  # Holders and sets are side by side, the largest first; a box is as wide as its bytes, and within the box above it.
  def test_widths_are_bytes
    with_page(read(large)) do |browser|
      boxes = browser.evaluate(BOXES)
      assert_operator boxes.size, :>, 500
      whole = boxes[0]["width"].fdiv(boxes[0]["bytes"])
      boxes.each { |box| assert_in_delta box["bytes"] * whole, box["width"], 0.01 }
      boxes.drop(1).each do |box|
        around = boxes[box["parent"]]
        assert_operator box["left"], :>=, around["left"] - 0.01
        assert_operator box["left"] + box["width"], :<=, around["left"] + around["width"] + 0.01
      end
      tops = boxes.select { |box| box["parent"].zero? }.sort_by { |box| box["left"] }
      assert_equal tops.map { |box| box["bytes"] }.sort.reverse, tops.map { |box| box["bytes"] }
      tops.each_cons(2) { |one, other| assert_in_delta one["left"] + one["width"], other["left"], 0.01 }
    end
  end

  def test_a_click_zooms_and_shows_what_keeps_it
    with_page(read(large)) do |browser|
      click(browser, 1)
      assert_equal 1, zoomed(browser)
      assert_equal %w[all], browser.texts("#path button")
      assert_match(/\Aconstant Shop::PageCache::PAGES \(\S+\)\n40\.\d MB, \d\d\.\d % of all\n111 objects\nShop::CACHE -> Hash -> "GET/, browser.text("told"))
      browser.evaluate("document.querySelector('#path button').click()")
      assert_equal 0, zoomed(browser)
    end
  end

  def test_keys_select_zoom_and_return
    with_page(read(large)) do |browser|
      browser.evaluate("document.getElementById('graph').focus()")
      browser.key("ArrowDown")
      assert_match(/\Aconstant Shop::PageCache::PAGES/, browser.text("told"))
      browser.key("ArrowRight")
      assert_match(/\Aconstant I18n::BACKEND/, browser.text("told"))
      %w[ArrowLeft ArrowDown].each { |name| browser.key(name) }
      assert_match(/ of the box above\n[\d,]+ objects?; 40 bytes of its own\n0x\h+\z/, browser.text("told"))
      browser.key("Enter")
      assert_operator zoomed(browser), :>, 1
      assert_match(/\Aallconstant Shop::PageCache::PAGES/, browser.text("path"), "the path of what is chosen")
      browser.key("Backspace")
      assert_equal 1, zoomed(browser)
      browser.key("Escape")
      assert_equal 0, zoomed(browser)
    end
  end

  def test_search_counts_what_is_inside_once
    node = ->(id, parent, edge, name, bytes) { [id, parent, edge, name, format("0x%x", 4096 + id), 40, bytes, 1] }
    tree = [[0, nil, "A", "constant", nil, 0, 900, 1], node.call(1, 0, "[0]", "User", 500), node.call(2, 1, "@friend", "User", 300), node.call(3, 0, "[1]", "String", 100)]
    with_page(analysis(holders: [holder(0, "A", 900)], sets: [], tree: tree)) do |browser|
      browser.fill("find", "USER")
      assert_equal "found: 2, 500 bytes, 55.6 %", browser.text("matches")
      browser.fill("find", "0x1003")
      assert_equal "found: 1, 100 bytes, 11.1 %", browser.text("matches")
      browser.evaluate("document.getElementById('find').focus()")
      browser.key("Enter")
      assert_match(/\A\[1\] String\n100 bytes/, browser.text("told"))
      browser.fill("find", "absent")
      assert_equal "no match", browser.text("matches")
    end
  end

  def test_the_tip_has_the_figures
    with_page(read(large)) do |browser|
      browser.mouse("mouseMoved", *middle(browser, 1))
      assert_match(/\Aconstant Shop::PageCache::PAGES \(\S+\)40\.\d MB, \d+\.\d % of all111 objectsShop::CACHE -> /, browser.text("tip"))
      browser.mouse("mouseMoved", 2, 2)
      browser.wait("document.getElementById('tip').hidden")
    end
  end

  def test_tables_lead_to_the_graph
    with_page(read(large)) do |browser|
      assert_equal 15, rows(browser, "#holders").size
      browser.evaluate("document.querySelector('#holders .quiet').click()")
      assert_equal 50, rows(browser, "#holders").size
      browser.evaluate("document.querySelectorAll('#holders tbody button')[1].click()")
      assert_equal 2, zoomed(browser)
      browser.evaluate("document.querySelectorAll('#classes tbody button')[0].click()")
      assert_match(/\Afound: /, browser.text("matches"))
    end
  end

  def test_a_click_on_internal_objects_finds_them
    with_page(analysis(holders: [holder(0, "A", 900, classes: [["", 9, 900]])], sets: [], tree: [[0, nil, "A", "constant", nil, 0, 900, 9]],
                       classes: [["", 9, 900], ["Absent", 1, 40]])) do |browser|
      assert_equal ["(internal)", "Absent"], browser.texts("#classes tbody button")
      browser.evaluate("document.querySelector('#classes tbody button').click()")
      assert_match(/\Afound: 1, 900 bytes/, browser.text("matches"))
    end
  end

  def test_hostile_names_are_text
    name = %(</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">\u2028)
    steps = [{ "edge" => name, "class" => name, "address" => name }]
    one = holder(0, name, 900, file: name, path: steps, classes: [[name, 1, 900]])
    tree = [[0, nil, name, name, name, 0, 900, 1], [1, 0, name, name, name, 40, 800, 1]]
    with_page(read(document(holders: [one], sets: [], tree: tree, classes: [[name, 1, 900]]), name: name)) do |browser|
      browser.evaluate("culetRetain.graph.zoom(2); culetRetain.find.look('script'); document.querySelector('#classes tbody button').click()")
      assert_equal [false, 0], browser.evaluate("[window.pwned === 1, document.images.length]")
      assert_includes browser.evaluate("document.querySelector('h1').textContent"), "<script>window.pwned=1</script>"
    end
  end

  def test_many_nodes
    with_page(read(large(nodes: 20_000, least: 500))) do |browser|
      assert_operator browser.evaluate("culetRetain.heap.parents.length"), :>, 10_000
      assert_operator browser.evaluate("culetRetain.graph.drawn"), :<, 13_000
    end
  end

  # As of a linked list.
  def test_a_long_chain
    tree = Array.new(20_000) { |id| [id, (id - 1 if id.positive?), "@next", "Node", format("0x%x", 4096 + id), 40, 40 * (20_000 - id), 20_000 - id] }
    with_page(analysis(holders: [holder(0, "A", 800_000, classes: [])], sets: [], tree: tree)) do |browser|
      assert_operator browser.evaluate("culetRetain.graph.levels"), :>, 19_900
      browser.evaluate("document.getElementById('find').focus()")
      browser.fill("find", format("0x%x", 4096 + 19_999))
      browser.key("Enter")
      assert_equal 20_000, zoomed(browser)
      assert_match(/\Aallconstant A.*… 19994 more …@next Node/, browser.text("path"))
      assert_equal [0, 19_997, 20_000], browser.evaluate("[5, 25, 85].map(function (top) { return culetRetain.graph.at(10, top); })")
    end
  end

  def test_a_process_that_keeps_nothing
    with_page(analysis(holders: [], sets: [])) do |browser|
      assert_equal ["0 bytes"], browser.texts(".total b")
    end
  end

  def test_it_fits_narrow_and_wide_windows_in_light_and_dark
    Dir.mktmpdir do |folder|
      path = File.join(folder, "retain.html")
      File.write(path, Culet::Retain::Html.new(read(large)).to_s)
      assert_layout(path, ready: READY) do |browser|
        browser.evaluate("culetRetain.graph.zoom(1)")
        assert_empty browser.evaluate(FAULTS)
        browser.evaluate("culetRetain.graph.zoom(0)")
      end
    end
  end

  def test_the_canvas_follows_the_theme
    with_page(read(large)) do |browser|
      light = browser.evaluate("culetRetain.graph.canvas.toDataURL()")
      browser.colors("dark")
      browser.wait("culetRetain.graph.canvas.toDataURL() !== #{JSON.generate(light)}")
    end
  end

  private

  def with_page(analysis, &block) = showing(Culet::Retain::Html.new(analysis).to_s, ready: READY, &block)

  # Of each node, in the order of their numbers.
  BOXES = <<~JAVASCRIPT
    (function () {
      var graph = culetRetain.graph, heap = culetRetain.heap;
      return heap.parents.map(function (parent, node) {
        return { parent: parent, bytes: heap.weights[node], left: graph.extent(node)[0], width: graph.extent(node)[1] };
      });
    }())
  JAVASCRIPT
  private_constant :BOXES

  # Where a node's box is in the window.
  def middle(browser, node)
    left, width, top = browser.evaluate("(function () { var graph = culetRetain.graph; return graph.extent(#{node}).concat(graph.top(culetRetain.heap.depths[#{node}])); }())")
    edges = browser.evaluate("(function () { var place = culetRetain.graph.canvas.getBoundingClientRect(); return [place.left, place.top]; }())")
    [edges[0] + left + (width / 2), edges[1] + top + 10]
  end

  def click(browser, node) = browser.drag(*[middle(browser, node)] * 2)

  def zoomed(browser) = browser.evaluate("culetRetain.graph.zoomed")

  def rows(browser, root) = browser.texts("#{root} tbody tr")
end
