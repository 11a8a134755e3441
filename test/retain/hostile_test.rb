# frozen_string_literal: true

require_relative "documents"
require "culet/tools/retain"

# Analyses that no agent of ours would send: one sentence each, in bounded time.
class RetainHostileTest < Minitest::Test
  include RetentionDocuments

  MUTATIONS = {
    "a list" => [[], /the whole is not an object/],
    "nothing" => [nil, /the whole is not an object/],
    "another version" => [->(all) { all["version"] = 2 }, /version is not 1/],
    "no holders" => [->(all) { all.delete("holders") }, /holders is missing/],
    "negative bytes" => [->(all) { all["holders"][0]["bytes"] = -1 }, /holders\[0\]\.bytes is not a whole number/],
    "huge bytes" => [->(all) { all["total_bytes"] = 1 << 70 }, /total_bytes is not a whole number/],
    "an unknown kind" => [->(all) { all["holders"][1]["kind"] = "magic" }, /holders\[1\]\.kind is not one of/],
    "a zero byte" => [->(all) { all["holders"][0]["file"] = "a\0b" }, /holders\[0\]\.file is not text/],
    "a path of numbers" => [->(all) { all["holders"][0]["path"] = [1] }, /holders\[0\]\.path\[0\] is not an object/],
    "a class of one" => [->(all) { all["classes"] = [["String"]] }, /classes\[0\] is not a list of 3/],
    "sums that are wrong" => [->(all) { all["holders"][0]["bytes"] += 1 }, /its holders do not add up to the total/],
    "parts that are wrong" => [->(all) { all["slot_bytes"] += 1 }, /its holders do not add up to the total/],
    "one number twice" => [->(all) { all["holders"][1]["id"] = 0 }, /two holders have one number/],
    "a child before its parent" => [->(all) { all["tree"] = [[9, 8, "", "", nil, 0, 0, 0]] }, /its tree is not in order/],
    "a node that is its own parent" => [->(all) { all["tree"] = [[9, 9, "", "", nil, 0, 0, 0]] }, /its tree is not in order/],
    "too many holders" => [->(all) { all["holders"] = Array.new(1_001) { |at| all["holders"][0].merge("id" => at) } }, /holders has more than 1000 rows/],
    "too many nodes" => [->(all) { all["tree"] = Array.new(30_001) { |at| [at, nil, "", "", nil, 0, 0, 0] } }, /tree has more than 30000 rows/],
    "a long path" => [->(all) { all["holders"][0]["path"] = all["holders"][0]["path"] * 40_000 }, /its paths are too long/],
    "something else selected" => [->(all) { all["selected"] = { "class" => 1 } }, /selected/]
  }.freeze

  MUTATIONS.each do |name, (change, sentence)|
    define_method("test_#{name.tr(" ", "_")}") do
      changed = change.respond_to?(:call) ? document.tap(&change) : change
      error = assert_raises(Culet::Error) { read(changed) }
      assert_match(/\Athe analysis of process 4242 is damaged: #{sentence}\z/, error.message[/.*/].sub(/(?<=#{sentence}).*/, ""))
    end
  end

  # Numbers of holders and sets that do not exist are of those beyond the listed ones.
  def test_references_to_nothing_are_left_out
    found = analysis(sets: [set([7, 8_000], 100)], selected: { "class" => "A", "objects" => 1, "bytes" => 1, "holders" => [[99, 1, 1], [-9, 1, 1]], "paths" => [] },
                     duplicates: [{ "length" => 1, "copies" => 2, "bytes" => 3, "holders" => [-5, 77], "content" => nil }])
    assert_equal ["2 more holders"], found.sets.map(&:title)
    assert_empty found.selected.keepers
    assert_empty found.duplicates.first.keepers
    refute_empty Culet::Retain::Table.new(found).to_s
  end

  # Every text of a process, in every report: no control character, no change of direction.
  def test_names_cannot_reach_the_terminal
    nasty = "A\e[2J\u202eB\r\n"
    steps = [{ "edge" => nasty, "class" => nasty, "address" => nasty }]
    one = holder(0, nasty, 900, file: nasty, path: steps, classes: [[nasty, 1, 900]])
    fields = { holders: [one], sets: [set([0], 100, paths: [steps])], classes: [[nasty, 90, 900]],
               duplicates: [{ "length" => 1, "copies" => 2, "bytes" => 3, "holders" => [0, -1], "content" => nasty }] }
    selections = [nil, { "class" => nasty, "objects" => 1, "bytes" => 1, "holders" => [[0, 1, 1]], "paths" => [steps] },
                  { "address" => nasty, "class" => nasty, "bytes" => 1, "retained_bytes" => 2, "holders" => [0], "paths" => [steps] }]
    tables = selections.product(%i[holder class gem]).map do |selected, by|
      Culet::Retain::Table.new(read(document(**fields, selected: selected), name: nasty), by: by, classes: true).to_s
    end
    growing = Array.new(7) { |at| Culet::Retention::Growth::Look.new(at.to_f, read(document(**fields, holders: [holder(0, nasty, 900_000 * (at + 1), path: steps)]))) }
    tables << Culet::Retain::GrowthTable.new(Culet::Retention::Growth.new(growing), classes: true).to_s
    tables.each { |text| refute_match(/[\e\r\u202e]/, text) }
  end

  def test_a_large_analysis_takes_little_time
    started = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    holders = Array.new(1_000) { |at| holder(at, "H#{at}", 1_000, path: STEPS * 30) }
    tree = Array.new(20_000) { |at| [at, at.zero? ? nil : at - 1, "@a", "Node", "0x1", 40, 20_000 - at, 1] }
    found = analysis(holders: holders, tree: tree, classes: Array.new(5_000) { |at| ["C#{at}", at, at] })
    refute_empty Culet::Retain::Html.new(found).to_s
    refute_empty Culet::Retain::Table.new(found).to_s
    assert_operator Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - started, :<, 30
  end
end
