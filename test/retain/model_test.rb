# frozen_string_literal: true

require_relative "documents"
require "culet/tools/retain"

# The analysis of a process as objects, and the tables made of it.
class RetainModelTest < Minitest::Test
  include RetentionDocuments

  def test_a_path_is_said_as_a_programmer_says_it
    assert_equal "Shop::CACHE -> Hash -> \"GET /a/1\" -> Page @body -> String", path(STEPS).to_s
  end

  def test_members_stand_behind_their_class_and_keys_alone
    steps = [["A", "Array"], ["[3]", "User"], ["@name", "String"]]
    assert_equal "A -> Array [3] -> User @name -> String", path(steps(*steps)).to_s
    assert_equal "H -> Hash -> :key -> User", path(steps(%w[H Hash], ["[:key]", "User"])).to_s
    assert_equal "H -> Hash [String] -> User", path(steps(%w[H Hash], ["[String]", "User"])).to_s
  end

  def test_a_linked_list_is_one_part
    steps = steps(%w[LIST Node], *Array.new(500) { ["@next", "Node"] }, ["@value", "String"])
    assert_equal "LIST -> Node @next (500 times) -> Node @value -> String", path(steps).to_s
  end

  def test_a_long_path_loses_its_middle
    parts = path(steps(*Array.new(40) { |at| ["@a#{at}", "C#{at}"] })).parts
    assert_equal 14, parts.size
    assert_includes parts, "(28 more)"
    assert_equal "C39", parts.last
  end

  def test_text_of_a_process_cannot_move_the_cursor
    assert_equal "A? -> B? @?x -> C", path(steps(["A\e", "B\u202e"], ["@\nx", "C"])).to_s
    assert_operator path(steps(["[\"#{"x" * 1_000}\"]", "C"])).to_s.size, :<, 100
  end

  def test_titles
    assert_equal "constant Shop::CACHE (/app/lib/shop.rb:12)", one("Shop::CACHE").title
    assert_equal "stack of thread 2 (/app/lib/shop.rb:12; may be stale)", one("of thread 2", kind: "stack").title
    assert_equal "global variable $x", one("$x", kind: "global", file: nil, line: nil).title
    assert_equal "closure app.rb:3", one("app.rb:3", kind: "closure", file: "app.rb", line: 3).title
    assert_equal "symbol table", one("symbol table", kind: "symbol_table", file: nil, line: nil).title
  end

  def test_sets_name_three_and_count_the_rest
    four = Array.new(5) { |at| holder(at, "H#{at}", 10) }
    assert_equal "H0, H1, H2 and 2 more holders", analysis(holders: four, sets: [set([0, 1, 2, 3, 4], 9)]).sets.first.title
    # Holders beyond the listed ones have numbers without names.
    assert_equal "H0 and 1 more holder", analysis(holders: four, sets: [set([0, 999], 9)]).sets.first.title
  end

  def test_each_byte_counts_once_by_gem
    gem = "/usr/lib/ruby/gems/3.4.0/gems/i18n-1.14.1/lib/i18n.rb"
    holders = [holder(0, "Shop::CACHE", 100), holder(1, "I18n::BACKEND", 70, file: gem), holder(2, "symbol table", 13, kind: "symbol_table", file: nil),
               holder(5, "URI::CACHE", 7, file: "/opt/ruby/lib/ruby/4.1.0+4/uri/common.rb"),
               holder(3, "nokogiri (Nokogiri::XML::Node)", 5, kind: "native", file: nil), holder(4, "[]", 1, kind: "thread_local", file: nil)]
    found = analysis(holders: holders, sets: [set([0, 1], 11), set([0, 0], 3)], others: [3, 9, 4])
    rows = Culet::Retention::Gems.new(found).rows.to_h { |row| [row.name, row.bytes] }
    assert_equal({ "the program" => 103, "i18n 1.14.1" => 70, "Ruby's own library" => 20, "several gems together" => 11, "nokogiri" => 5, "unknown" => 5 }, rows)
    assert_equal found.total_bytes, rows.values.sum
  end

  def test_the_table_says_who_keeps_it
    text = Culet::Retain::Table.new(analysis(others: [7, 70, 1_000])).to_s
    assert_includes text, "1. 400 kB (73.8 %), 111 objects: constant Shop::CACHE (/app/lib/shop.rb:12)\n   100 String 300 kB; 10 Page 100 kB\n   " \
                          "Shop::CACHE -> Hash -> \"GET /a/1\" -> Page @body -> String\n"
    assert_includes text, "1. 41.0 kB (7.6 %), 50 objects: A::LIST and B::INDEX together; release from both\n"
    assert_includes text, "7 more holders: 1.00 kB (0.2 %)"
  end

  def test_what_is_left_out_is_added_up
    holders = Array.new(12) { |at| holder(at, "H#{at}", 1_000) }
    text = Culet::Retain::Table.new(analysis(holders: holders, sets: [], others: [5, 50, 500]), top: 10).to_s
    assert_includes text, "7 more holders: 2.50 kB"
    refute_includes text, "H10"
  end

  def test_tables_by_class_and_gem
    by_class = Culet::Retain::Table.new(analysis, by: :class).to_s
    assert_match(/^String +271 kB +50\.0 % +900 +constant Shop::CACHE \S+ 300 kB$/, by_class)
    assert_match(/^\(internal\) +67\.6 kB/, by_class)
    assert_match(/^the program +541 kB +100\.0 % +383 +4$/, Culet::Retain::Table.new(analysis, by: :gem).to_s)
  end

  def test_a_selected_class
    selected = { "class" => "User", "objects" => 3, "bytes" => 120, "holders" => [[0, 2, 80], [-1, 1, 40]], "paths" => [STEPS] }
    text = Culet::Retain::Table.new(analysis(selected: selected)).to_s
    assert_match(/^constant Shop::CACHE \S+ +2 +80 bytes\nA::LIST and B::INDEX +1 +40 bytes$/, text)
    assert_includes text, "   Shop::CACHE -> Hash"
  end

  def test_a_selected_object
    selected = { "address" => "0x7f", "class" => "User", "bytes" => 120, "retained_bytes" => 500, "holders" => [0], "paths" => [STEPS] }
    text = Culet::Retain::Table.new(analysis(selected: selected)).to_s.tr("\n", " ")
    assert_includes text, "0x7f is a User of 120 bytes; 500 bytes would be free without it. It is kept by constant Shop::CACHE"
  end

  def test_duplicates_show_texts_only_where_they_were_requested
    rows = [{ "length" => 20, "copies" => 400, "bytes" => 16_000, "holders" => [0, -1], "content" => nil },
            { "length" => 6, "copies" => 3, "bytes" => 120, "holders" => [], "content" => "se\ecret" }]
    text = Culet::Retain::Table.new(analysis(duplicates: rows)).to_s
    assert_match(/^of 20 bytes +400 +16\.0 kB +constant Shop::CACHE .* and A::LIST and B::INDEX$/, text)
    assert_match(/^"se\\ecret" +3/, text)
  end

  def test_the_document_keeps_the_sums
    found = Culet::Retain::Document.new(analysis(others: [7, 70, 1_000]), top: 1).to_h
    assert_equal found["total_bytes"], [*found["holders"], *found["sets"], found["other_holders"], found["other_sets"]].sum { |one| one["bytes"] }
    assert_equal ["Shop::CACHE", "Hash", "\"GET /a/1\"", "Page @body", "String"], found["holders"].first["path"]
    assert_equal %w[A::LIST B::INDEX], found["sets"].first["names"]
    assert_equal({ "count" => 9, "objects" => 292, "bytes" => 101_000 }, found["other_holders"])
    refute_includes found, "growth"
  end

  private

  def path(steps) = Culet::Retention::Path.new(steps)

  def steps(*list) = list.map { |edge, name| { "edge" => edge, "class" => name, "address" => nil } }

  def one(name, **fields) = Culet::Retention::Holder.new(holder(0, name, 9, **fields))
end
