# frozen_string_literal: true

require "test_helper"
require "json"

# What is left when workloads are done: without trims, with the spike, with culet/auto.
class TrimWorkloadsTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/trims/workloads")

  def test_a_small_comparison
    skip "it takes a quarter of a minute; CULET_TEST_ALL=1 runs it" unless all_tests?

    directory = new_folder
    path = File.join(directory, "all.json")
    out, = assert_success(RbConfig.ruby, "-w", BENCH, "--runs", "1", "--scale", "0.1", "--out", path, "fragments")
    assert_equal 6, out.lines.size, out
    rows = JSON.parse(File.read(path)).fetch("results").select { |row| row["metric"] == "end RSS" }.group_by { |row| row["subject"] }
    assert_equal ["fragments on glibc", "fragments on glibc:arena_max=2"], rows.keys
    rows.each_value do |list|
      assert_equal ["no trims", "trim at the end of the sweep", "culet/auto"], list.map { |row| row["contender"] }
      plain, spike, auto = list.map { |row| row["median"] }
      [spike, auto].each { |megabytes| assert_operator megabytes, :<, plain }
    end
  end

  def test_wrong_usage
    _, err, status = run_program(RbConfig.ruby, "-w", BENCH, "--runs", "many")
    assert_equal [2, 1], [status.exitstatus, err.lines.size], err
    _, err, status = run_program(RbConfig.ruby, "-w", BENCH, "nothing")
    assert_equal 2, status.exitstatus
    assert_match(/unknown workload "nothing"/, err)
  end
end
