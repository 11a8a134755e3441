# frozen_string_literal: true

require "test_helper"
require "shellwords"
require "culet/tools/compare"

class ComparePlanTest < Minitest::Test
  Plan = Culet::Benchmark::Plan
  Workload = Culet::Compare::Workload

  def test_the_same_seed_gives_the_same_order
    assert_equal order(plan(seed: 5)), order(plan(seed: 5))
    refute_equal order(plan(seed: 5)), order(plan(seed: 6))
  end

  def test_every_candidate_once_per_round_and_rounds_in_a_row
    schedule = plan(seed: 1).schedule
    assert_equal (1..(2 * 4 * 3)).to_a, schedule.map(&:order)
    schedule.each_slice(3) do |round|
      assert_equal 1, round.map { |run| [run.workload.name, run.run] }.uniq.size
      assert_equal %w[culet glibc jemalloc], round.map { |run| run.choice.spec }.sort
    end
  end

  def test_rounds_are_shuffled_anew
    rounds = plan(seed: 1).schedule.each_slice(3).map { |round| round.map { |run| run.choice.spec } }
    assert_operator rounds.uniq.size, :>, 1
  end

  def test_allocators_with_several_settings_are_told_apart
    assert_equal ["glibc", "jemalloc:narenas=2,dirty_decay_ms=0", "culet"],
                 Plan.split_allocators("glibc,jemalloc:narenas=2,dirty_decay_ms=0, culet")
    assert_equal ["glibc:trim", "jemalloc:narenas=2,trim", "culet:trim=now,children=all", "glibc"],
                 Plan.split_allocators("glibc:trim,jemalloc:narenas=2,trim,culet:trim=now,children=all,glibc")
    assert_equal %w[glibc arena_max=2], Plan.split_allocators("glibc,arena_max=2"), "a setting needs an allocator with a colon"
  end

  def test_unknown_workload_is_named_with_the_known_ones
    error = assert_raises(Culet::UsageError) { Workload.built_in("nothing") }
    assert_match(/unknown workload "nothing".*threads.*rails/, error.message)
  end

  def test_a_commands_name_can_be_pasted_into_a_shell
    name = Workload.command(["ruby", "-e", "puts 'a b'", "x=1", ""]).name
    assert_equal ["ruby", "-e", "puts 'a b'", "x=1", ""], Shellwords.split(name)
  end

  def test_a_load_target_is_on_this_machine
    %w[http://127.0.0.1/ http://localhost:3000/a?b=c http://[::1]:9/ http://127.8.9.1/].each do |url|
      assert_equal url, Culet::Compare::LoadTarget.parse(url).to_s
    end
    ["http://example.org/", "https://127.0.0.1/", "ftp://127.0.0.1/", "127.0.0.1:3000", "http://127.0.0.1.example.org/",
     "http://", "http://a b/", "nonsense"].each do |url|
      error = assert_raises(Culet::UsageError, url) { Culet::Compare::LoadTarget.parse(url) }
      assert_match(/--url/, error.message)
    end
  end

  private

  def plan(seed:)
    Plan.new(workloads: %w[cpu hash].map { |name| Workload.built_in(name) }, runs: 4, seed: seed, baseline: "glibc",
             choices: %w[glibc jemalloc culet].map { |spec| Culet::Allocators.parse(spec) })
  end

  def order(plan) = plan.schedule.map { |run| [run.workload.name, run.choice.spec, run.run] }
end
