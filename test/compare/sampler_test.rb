# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require_relative "sampled"

class CompareSamplerTest < Minitest::Test
  Compare = Culet::Compare
  MIB = 1024 * 1024
  STOP = Sampled::STOP

  def test_series_weighs_the_mean_by_time
    series = Compare::Series.new
    series.add(at: 0.0, rss: 100, pss: 90, processes: 1)
    series.add(at: 1.0, rss: 100, pss: nil, processes: 1)
    series.add(at: 1.1, rss: 1_100, pss: nil, processes: 2)
    series.add(at: 2.1, rss: 1_100, pss: 1_000, processes: 2)
    assert_equal 600, series.mean_rss_bytes
    assert_equal 1_100, series.peak_rss_bytes
    assert_equal 1_000, series.peak_pss_bytes
    assert_equal({ "at_seconds" => 1.0, "rss_bytes" => 100, "processes" => 1 }, series.to_a[1])
  end

  def test_series_takes_the_kernels_peak_where_it_is_higher
    series = Compare::Series.new
    series.add(at: 0.0, rss: 100, pss: nil, processes: 1)
    series.process_peaks = { 1 => 400, 2 => 300 }
    assert_equal 400, series.peak_rss_bytes
    assert_equal 1, series.largest_process
    assert_nil series.peak_pss_bytes
  end

  def test_series_tells_the_work_from_the_rest_after_it
    series = Compare::Series.new
    [[0.0, 100], [1.0, 300], [1.5, 300], [2.8, 50], [2.9, 70], [2.95, 60], [3.0, 900]].each { |at, rss| series.add(at: at, rss: rss, pss: rss, processes: 1) }
    series.done_at = 1.2
    assert_equal 200, series.mean_rss_bytes
    assert_equal 200, series.mean_pss_bytes
    assert_equal 900, series.peak_rss_bytes
    assert_equal 70, series.end_rss_bytes, "the median of the last 0.2 s: 60, 70, 900"
    series.done_at = -1.0
    assert_operator series.mean_rss_bytes, :>, 200
    assert_nil Compare::Series.new.end_rss_bytes
  end

  def test_the_end_is_what_was_resident_just_before_it
    series = sample("x = 'a' * (300 << 20); x.clear; x = nil; GC.start; y = 'b' * (100 << 20); #{STOP}; sleep 0.25; #{STOP}")
    assert_in_delta 110 * MIB, series.end_rss_bytes, 20 * MIB
  end

  def test_sees_memory_that_comes_and_goes
    series = sample("x = 'a' * (200 << 20); #{STOP}; x.clear; x = nil; GC.start; #{STOP}")
    least, most = series.to_a.map { |one| one["rss_bytes"] }.minmax
    assert_operator most, :>, 200 * MIB
    assert_operator series.peak_rss_bytes, :>=, most
    assert_operator series.to_a.last["rss_bytes"], :<, 100 * MIB
    assert_operator series.mean_rss_bytes, :<, most
    assert_operator series.mean_rss_bytes, :>, least
  end

  # One peak of some milliseconds between two samples is known from VmHWM.
  def test_a_short_peak_is_not_missed
    series = sample("#{STOP}; x = 'a' * (150 << 20); x.clear; x = nil; #{STOP}")
    assert_operator series.peak_rss_bytes, :>, 150 * MIB
  end

  def test_counts_the_whole_tree_and_shares_pages_out_in_pss
    series = sample_until("x = 'a' * (100 << 20); 2.times { fork { sleep } }; #{WAITING}") do |samples|
      samples.any? { |one| one["processes"] == 3 && one["pss_bytes"] }
    end
    assert_equal 3, series.to_a.map { |one| one["processes"] }.max
    assert_operator series.peak_rss_bytes, :>, 290 * MIB, "RSS counts the string in each of three processes"
    assert_operator series.peak_pss_bytes, :<, 180 * MIB, "PSS counts it once"
    assert_operator series.peak_pss_bytes, :>, 100 * MIB
  end

  # Processes that are there from the first look on, and how often was looked.
  Listed = Struct.new(:root, :pids, :looks) do
    def alive
      self.looks += 1
      pids
    end
    alias_method :refresh, :alive
  end

  # Between vfork and exec a child shares its parent's memory.
  def test_a_process_counts_from_the_second_look_on
    with_program(RbConfig.ruby, "-e", WAITING) do |root|
      with_program(RbConfig.ruby, "-e", WAITING) do |child|
        listed = Listed.new(root, [root, child], 0)
        sampler = start(descendants: listed)
        sleep 0.01 until listed.looks > 2
        assert_equal [1, 2], sampler.stop.to_a.map { |one| one["processes"] }.first(2)
      end
    end
  end

  # On a busy machine a sampler starts later than the program.
  def test_times_are_those_since_the_program_was_started
    with_program(RbConfig.ruby, "-e", WAITING) do |root|
      listed = Listed.new(root, [root], 0)
      sampler = start(descendants: listed, started_at: Culet::Clock.now - 100)
      sleep 0.01 until listed.looks > 1
      assert_includes 100..200, sampler.stop.to_a.first["at_seconds"]
    end
  end

  def test_samples_are_closer_than_the_interval_asks_and_pss_is_rare
    series = sample_until(WAITING) { |samples| samples.size >= 60 }
    times = series.to_a.map { |one| one["at_seconds"] }
    assert_operator times.each_cons(2).map { |before, after| after - before }.min, :<, 0.1
    assert_equal times.sort, times
    assert_operator series.to_a.count { |one| one.key?("pss_bytes") }, :<=, 6 + (2 * times.last)
  end

  private

  def start(descendants:, choice: Culet::Allocators.parse("glibc"), started_at: Culet::Clock.now)
    check = Culet::Benchmark::PreloadCheck.new(choice)
    Compare::Sampler.new(descendants: descendants, preload_check: check, started_at: started_at).start
  end

  # @yieldparam samples [Array<Hash>] of the program, until they are enough
  def sample_until(program)
    with_program(RbConfig.ruby, "--disable-gems", "-e", program) do |pid|
      series = Compare::Series.new
      sampler = Compare::Series.stub(:new, series) { start(descendants: Culet::Descendants.new(root: pid, mark: "none")) }
      assert_settles("samples are taken") { yield series.to_a }
      sampler.stop
    end
  end

  def sample(script)
    choice = Culet::Allocators.parse("glibc")
    child = Culet::Benchmark::Child.new(command: [RbConfig.ruby, "--disable-gems", "-e", script], environment: choice.environment(ENV).then do |own|
      ENV.to_h.merge(own).compact
    end)
    sampler = start(descendants: child.descendants, choice: choice, started_at: child.started_at)
    assert child.wait(PATIENCE_SECONDS), "the program did not end"
    sampler.stop
  ensure
    child.stop
  end
end
