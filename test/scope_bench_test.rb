# frozen_string_literal: true

require "test_helper"
require "json"

# bench/scope/run at its smallest: each heap is filled and read, and the figures make sense.
class ScopeBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/scope/run")

  def test_every_heap
    folder = new_folder
    out, err, status = bench("--megabytes", "40", "--runs", "1", "--out", "#{folder}/all.json")
    assert status.success?, err
    rows = JSON.parse(File.read("#{folder}/all.json")).fetch("results").group_by { |row| row["subject"] }
    assert_equal ["mixed", "ruby", "small", "holes", "busy", "culet", "culet-small", "any heap"], rows.keys
    rows.each do |heap, list|
      assert_includes out, "| #{heap} |"
      medians = list.to_h { |row| row.values_at("metric", "median") }
      assert_includes 10..200, medians.fetch("heap", 40), heap
      assert_operator medians.fetch("heap read per CPU second while paused"), :>, 0, heap
    end
  end

  def test_a_heap_that_there_is_not
    _, err, status = bench("fragments")
    assert_equal [2, "bench/scope/run: there is no heap fragments; see --help\n"], [status.exitstatus, err]
  end

  private

  def bench(*words) = run_program("ruby", BENCH, *words)
end
