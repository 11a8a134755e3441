# frozen_string_literal: true

require_relative "documents"
require "culet/tools/retain"

# The page of what is retained, without a browser.
class RetainPageTest < Minitest::Test
  include RetentionDocuments

  def test_the_data_has_holders_sets_and_their_objects
    tree = [[0, nil, "Shop::CACHE", "constant", nil, 0, 400_000, 1], [1, nil, "A::LIST", "constant", nil, 0, 90_000, 1], [3, nil, "set", "", nil, 0, 41_000, 1],
            [4, 0, "[:a]", "Page", "0x10", 40, 300_000, 9], [5, 4, "@body", "String", "0x20", 40, 200_000, 1], [6, 3, "[0]", "String", "0x30", 40, 30_000, 1]]
    nodes, strings, paths = data(analysis(tree: tree, others: [7, 70, 1_000])).values_at("nodes", "strings", "paths")
    names = nodes["name"].map { |number| strings[number] }
    rows = names.zip(nodes["parent"], nodes["bytes"], nodes["sort"])
    assert_equal ["all", -1, 542_000, 0], rows[0]
    assert_equal ["A::LIST and B::INDEX together", 0, 41_000, 2], rows[4]
    assert_equal ["7 more holders", 0, 1_000, 4], rows[5]
    assert_equal [["[:a]", 1, 300_000, 3], ["@body", 6, 200_000, 3], ["[0]", 4, 30_000, 3]], rows[6, 3]
    assert_equal({ "1" => 1, "2" => 1, "3" => 1, "4" => 2 }, paths.transform_values(&:size))
    assert_equal 1, nodes.values.map(&:size).uniq.size
  end

  # Small objects are not in the tree: by class, they stand in the node that has most of the holder's bytes.
  def test_small_objects_stand_where_they_are
    one = holder(0, "A", 1_000, classes: [["String", 90, 700], ["Hash", 1, 100], ["", 5, 150]])
    tree = [[0, nil, "A", "constant", nil, 0, 1_000, 96], [1, 0, "", "Hash", "0x10", 100, 1_000, 96], [2, 1, "[0]", "String", "0x20", 200, 200, 1]]
    nodes, strings = data(analysis(holders: [one], sets: [], tree: tree)).values_at("nodes", "strings")
    small = nodes["sort"].each_index.select { |node| nodes["sort"][node] == 5 }
    assert_equal [["89 String", 2, 500, 89], ["5 (internal)", 2, 150, 5]], small.map { |node| [strings[nodes["name"][node]], *%w[parent bytes objects].map { |key| nodes[key][node] }] }
  end

  # What a holder beyond the listed ones keeps has no place in the map but the rest's.
  def test_nodes_of_unlisted_holders_are_left_out
    tree = [[0, nil, "A", "", nil, 0, 9, 1], [90, nil, "B", "", nil, 0, 9, 1], [91, 90, "[0]", "String", nil, 9, 9, 1]]
    assert_equal 2, data(analysis(holders: [holder(0, "A", 9, classes: [])], sets: [], tree: tree))["nodes"]["parent"].size
  end

  def test_children_hold_no_more_than_their_parent
    nodes = data(read(large))["nodes"]
    sums = Hash.new(0)
    nodes["parent"].zip(nodes["bytes"]) { |parent, bytes| sums[parent] += bytes }
    assert_equal nodes["bytes"][0], sums[0]
    assert(sums.all? { |node, bytes| node.negative? || bytes <= nodes["bytes"][node] })
  end

  def test_the_page_loads_nothing_and_says_so
    page = Culet::Retain::Html.new(analysis).to_s
    script = page[%r{<script>(.*)</script>}m, 1]
    assert_includes page, "script-src 'sha256-#{Digest::SHA256.base64digest(script)}'"
    assert_includes page, "default-src 'none'"
    refute_match(%r{https?://}, page.sub(/<script type.*/m, ""))
  end

  private

  def data(analysis) = JSON.parse(JSON.generate(Culet::Retain::PageData.new(analysis).to_h))
end
