# frozen_string_literal: true

require "test_helper"
require "json"

# bench/scope/run at its smallest: each heap is filled and read, and the figures make sense.
class ScopeBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/scope/run")

  def test_every_heap
    folder = new_folder
    out, err, status = bench("--megabytes", "40", "--runs", "1", "--json", "#{folder}/all.json")
    assert status.success?, err
    heaps = JSON.parse(File.read("#{folder}/all.json")).fetch("heaps")
    assert_equal %w[mixed ruby small holes busy culet culet-small], heaps.map { |heap| heap["heap"] }
    heaps.each do |heap|
      assert_includes out, "| #{heap["heap"]} |"
      assert_includes 10_000_000..200_000_000, heap["heap_bytes"], heap["heap"]
      assert_operator heap["bytes_per_paused_cpu_second"], :>, 0, heap["heap"]
      assert_equal 1, heap["readings"].size
    end
  end

  def test_a_heap_that_there_is_not
    _, err, status = bench("fragments")
    assert_equal [2, "bench/scope/run: there is no heap fragments; see --help\n"], [status.exitstatus, err]
  end

  private

  def bench(*words) = run_program("ruby", BENCH, *words)
end
