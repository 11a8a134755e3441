# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/tools/compare"
require_relative "../../bench/trims/ranking"

# What is left when workloads are done: without trims, with the spike, with culet/auto.
class TrimWorkloadsTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/trims/workloads")

  def test_the_goal_is_judged_by_what_is_left
    rows = [["glibc", 90], ["glibc:spike", 20], ["glibc:trim", 22], ["glibc:arena_max=2", 40], ["glibc:spike,arena_max=2", 20]]
    assert Ranking.new(document(rows + [["glibc:trim,arena_max=2", 23]])).reached?
    refute Ranking.new(document(rows + [["glibc:trim,arena_max=2", 24]])).reached?
    missing = Ranking.new(document(rows))
    refute missing.reached?, "a candidate that was excluded has reached nothing"
    assert_includes missing.to_s, "| threads | glibc | 90.0 | 20.0 | 22.0 | 1.10 |"
    assert_includes missing.to_s, "| threads | glibc:arena_max=2 | 40.0 | 20.0 | - | - |"
  end

  def test_a_small_comparison
    skip "it takes a quarter of a minute; CULET_TEST_ALL=1 runs it" unless all_tests?

    directory = new_folder
    path = File.join(directory, "all.json")
    out, err, status = run_program(RbConfig.ruby, "-w", BENCH, "--runs", "1", "--scale", "0.1", "--json", path, "fragments")
    assert_includes [0, 3], status.exitstatus, err
    document = JSON.parse(File.read(path))
    assert_empty document["excluded"]
    assert_equal 6, document["results"].size
    plain, spike, auto = document["results"].first(3).map { |result| result.dig("summary", "end_rss_bytes", "median") }
    [spike, auto].each { |bytes| assert_operator bytes, :<, plain }
    assert_equal 4, out.lines.size
  end

  def test_wrong_usage
    _, err, status = run_program(RbConfig.ruby, "-w", BENCH, "--runs", "many")
    assert_equal [2, 1], [status.exitstatus, err.lines.size], err
    _, err, status = run_program(RbConfig.ruby, "-w", BENCH, "nothing")
    assert_equal 2, status.exitstatus
    assert_match(/unknown workload "nothing"/, err)
  end

  private

  # @return [Hash] as of a comparison: candidates and what they end at, in MB
  def document(rows)
    results = rows.map do |allocator, megabytes|
      same = ->(value) { { "median" => value, "low" => nil, "high" => nil } }
      { "workload" => "threads", "allocator" => allocator,
        "summary" => { "end_rss_bytes" => same.call(megabytes * 1_000_000), "peak_rss_bytes" => same.call(100_000_000), "cpu_seconds" => same.call(1.0) } }
    end
    { "results" => results }
  end
end
