# frozen_string_literal: true

require_relative "documents"
require "culet/tools/retain"
require "map/in_browser"

# The page of what is retained in a real browser, without a network.
class RetainPageBrowserTest < Minitest::Test
  include RetentionDocuments
  include InBrowser

  READY = "document.documentElement.dataset.retain"

  # Children lie within their parent, do not overlap, and have areas in the ratio of their bytes.
  def test_areas_are_bytes
    with_page(read(large)) do |browser|
      boxes = boxes(browser)
      assert_operator boxes.size, :>, 500
      by_node = boxes.to_h { |box| [box["node"], box] }
      boxes.drop(1).each do |box|
        around = by_node.fetch(box["parent"])
        assert inside?(box, around), "#{box} in #{around}"
      end
      assert_empty(overlaps(boxes.select { |box| box["parent"].zero? }))
      ratios = boxes.select { |box| box["parent"].zero? && box["width"] * box["height"] > 400 }.map { |box| box["width"] * box["height"] / box["bytes"] }
      assert_in_delta 1, ratios.max / ratios.min, 0.01
    end
  end

  def test_boxes_are_close_to_squares
    with_page(read(large)) do |browser|
      sides = boxes(browser).select { |box| box["parent"].zero? }.map { |box| box.values_at("width", "height") }
      assert_operator sides.count { |pair| pair.max / pair.min < 4 }, :>=, sides.size * 0.8
    end
  end

  def test_a_click_selects_and_a_second_one_zooms
    with_page(read(large)) do |browser|
      2.times { |turn| click(browser, 1).then { assert_equal turn, zoomed(browser) } }
      assert_equal %w[all], browser.texts("#path button")
      assert_match(/\Aconstant Shop::PageCache::PAGES \(\S+\)40\.\d MB, \d\d\.\d % of all; 111 objectsShop::CACHE -> Hash -> "GET/, browser.text("told"))
      browser.evaluate("document.querySelector('#path button').click()")
      assert_equal 0, zoomed(browser)
    end
  end

  def test_keys_select_zoom_and_return
    with_page(read(large)) do |browser|
      browser.evaluate("document.getElementById('map').focus()")
      browser.key("ArrowDown")
      assert_match(/\Aconstant Shop::PageCache::PAGES/, browser.text("told"))
      browser.key("ArrowRight")
      assert_match(/\Aconstant I18n::BACKEND/, browser.text("told"))
      %w[ArrowLeft ArrowDown].each { |name| browser.key(name) }
      assert_match(/constant Shop::PageCache::PAGES .* -> /, browser.text("told"), "the path of what is chosen")
      browser.key("Enter")
      assert_operator zoomed(browser), :>, 1
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
      assert_match(/\A\[1\] String100 bytes/, browser.text("told"))
      browser.fill("find", "absent")
      assert_equal "no match", browser.text("matches")
    end
  end

  def test_the_tip_has_the_figures
    with_page(read(large)) do |browser|
      box = boxes(browser).find { |one| one["node"] == 1 }
      browser.mouse("mouseMoved", *middle(browser, box, top: 8))
      assert_match(/\Aconstant Shop::PageCache::PAGES \(\S+\)40\.\d MB, \d+\.\d % of all111 objects\z/, browser.text("tip"))
      browser.mouse("mouseMoved", 2, 2)
      browser.wait("document.getElementById('tip').hidden")
    end
  end

  def test_tables_lead_to_the_map
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
      browser.evaluate("culetRetain.map.zoom(2); culetRetain.find.look('script'); document.querySelector('#classes tbody button').click()")
      assert_equal [false, 0], browser.evaluate("[window.pwned === 1, document.images.length]")
      assert_includes browser.evaluate("document.querySelector('h1').textContent"), "<script>window.pwned=1</script>"
    end
  end

  def test_many_nodes
    with_page(read(large(nodes: 20_000, least: 500))) do |browser|
      assert_operator browser.evaluate("culetRetain.heap.size"), :>, 10_000
      assert_operator browser.evaluate("culetRetain.map.boxes.length"), :<=, 13_000
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
        browser.evaluate("culetRetain.map.zoom(1)")
        assert_empty browser.evaluate(FAULTS)
        browser.evaluate("culetRetain.map.zoom(0)")
      end
    end
  end

  def test_the_canvas_follows_the_theme
    with_page(read(large)) do |browser|
      light = browser.evaluate("culetRetain.map.canvas.toDataURL()")
      browser.colors("dark")
      browser.wait("culetRetain.map.canvas.toDataURL() !== #{JSON.generate(light)}")
    end
  end

  private

  def with_page(analysis, &block) = showing(Culet::Retain::Html.new(analysis).to_s, ready: READY, &block)

  def boxes(browser)
    browser.evaluate(<<~JAVASCRIPT)
      culetRetain.map.boxes.map(function (box) {
        return Object.assign({ parent: culetRetain.heap.parents[box.node], bytes: culetRetain.heap.bytes(box.node) }, box);
      })
    JAVASCRIPT
  end

  def inside?(box, around)
    %w[left top].zip(%w[width height]).all? { |from, size| box[from] >= around[from] - 0.01 && box[from] + box[size] <= around[from] + around[size] + 0.01 }
  end

  def overlaps(boxes)
    boxes.combination(2).select { |pair| %w[left top].zip(%w[width height]).all? { |from, size| pair.map { |one| one[from] + one[size] }.min - pair.map { |one| one[from] }.max > 0.01 } }
  end

  def middle(browser, box, top: box["height"] / 2)
    left, above = browser.evaluate("(function () { var place = culetRetain.map.canvas.getBoundingClientRect(); return [place.left, place.top]; }())")
    [left + box["left"] + (box["width"] / 2), above + box["top"] + top]
  end

  # On the title of a box.
  def click(browser, node)
    place = middle(browser, boxes(browser).find { |one| one["node"] == node }, top: 8)
    browser.drag(place, place)
  end

  def zoomed(browser) = browser.evaluate("culetRetain.map.zoomed")

  def rows(browser, root) = browser.texts("#{root} tbody tr")
end
