# frozen_string_literal: true

require "test_helper"
require "culet/model/profile"

# The rule by which a site grows, on simulated births: what it must find, what it must not, and how often it errs.
class ProfileBirthsTest < Minitest::Test
  PERIODS = Culet::Profile::Births::PERIODS
  SAMPLE = 32_768
  SIZE = 400
  RUNS = 400

  def setup
    @random = Random.new(7)
  end

  def test_a_constant_leak_is_found_in_95_of_100_cases
    found = [Culet::Profile::Births::DETECTABLE, 40, 1_000].map do |samples|
      Array.new(RUNS) { births(Array.new(PERIODS, samples.fdiv(PERIODS))).grows? }.count(true).fdiv(RUNS)
    end
    # 95 %, less 3 standard deviations of 400 runs
    found.each { |share| assert_operator share, :>=, 0.95 - (3 * Math.sqrt(0.95 * 0.05 / RUNS)) }
  end

  # 1 MB a minute, at the distance that the view has.
  def test_one_megabyte_a_minute_is_found_beside_a_large_boot
    samples = 1_000_000.0 / SAMPLE / PERIODS
    found = Array.new(RUNS) { births([5_000, *Array.new(PERIODS - 1, samples)]).grows? }.count(true).fdiv(RUNS)
    assert_operator found, :>=, 0.95
  end

  def test_what_is_allocated_in_half_of_the_time_is_no_growth
    { boot: [[0, 9_000]], warm_up: [[0, 9_000], [1, 900], [2, 300], [3, 90]], in_flight: [[11, 9_000], [10, 900]],
      late_feature: [[5, 4_000], [6, 4_000]], both: [[0, 9_000], [4, 500], [10, 500], [11, 9_000]],
      bursts: [[1, 500], [3, 500], [5, 500], [7, 500], [9, 500]] }.each do |name, rates|
      means = Array.new(PERIODS, 0.0)
      rates.each { |at, mean| means[at] = mean.to_f }
      assert_equal 0, Array.new(50) { births(means).grows? }.count(true), name
    end
  end

  # The windows in which objects are sampled are rarer later: a sample stands for more of them.
  def test_a_leak_whose_samples_become_fewer_is_growth
    weights = Array.new(PERIODS) { |at| at < PERIODS / 2 ? 1.0 : 6.0 }
    found = Array.new(RUNS) do
      periods = weights.map { |weight| estimate(poisson(12 / weight)) * weight }
      Culet::Profile::Births.new(periods, periods.sum(Culet::Profile::Estimate.new)).grows?
    end
    assert_operator found.count(true), :>=, 0.95 * RUNS
  end

  # A cache of frequent and rare keys fills ever more slowly.
  def test_a_cache_that_fills_up_is_no_growth
    means = Array.new(PERIODS) { |at| 3_000.0 * (0.45**at) }
    assert_operator Array.new(RUNS) { births(means).grows? }.count(true), :<=, 0.05 * RUNS
  end

  # Survivors of all periods, each in place of one that was there before.
  def test_a_pool_that_replaces_what_it_has_is_no_growth
    grows = Array.new(RUNS) do
      means = Array.new(PERIODS, 20.0)
      births(means, dropped: poisson(means.sum)).grows?
    end
    # The limit of three standard deviations is passed by chance in 0.13 % of cases.
    assert_operator grows.count(true), :<=, 4
  end

  # A large leak of a short program: bytes decide about its rank.
  def test_a_leak_of_eight_samples_may_be_growth
    found = Array.new(RUNS) { births(Array.new(PERIODS, 8.fdiv(PERIODS))) }
    assert_operator found.count(&:grows?), :<, 0.6 * RUNS
    assert_operator found.count(&:may_grow?), :>=, 0.85 * RUNS
  end

  def test_enough_samples_and_known_blocks_and_bursts_are_no_growth
    { enough: [[2, 7], [5, 7], [8, 7]], burst: [[5, 6], [6, 6]], early: [[1, 9], [2, 6], [3, 3]] }.each do |name, counts|
      refute_predicate at(counts), :may_grow?, name
    end
    assert_predicate at([[2, 6], [5, 6], [8, 6]]), :may_grow?
    known = Culet::Profile::Estimate.new(6, 6.0, 6e6, 0.0)
    refute_predicate Culet::Profile::Births.new({ 2 => known, 5 => known, 8 => known }, known + known + known), :may_grow?
  end

  def test_sums
    one = Culet::Profile::Births.new({ 0 => estimate(2), 11 => estimate(3) }, estimate(6), estimate(1))
    both = one + (one * 2.0)
    assert_equal [4, 6], both.periods.values_at(0, 11).map(&:samples)
    assert_in_delta 3 * estimate(2).bytes, both.periods.first.bytes
    assert_in_delta 3 * estimate(5).bytes, both.net_bytes, 1
    assert_equal [2, true, false], [both.periods.count { |period| period.samples.positive? }, one.later?, one.grows?]
  end

  # By the sum of the probabilities, and R's pbinom.
  def test_the_binomial_distribution
    { [3, 10, 0.5] => 0.171875, [0, 4, 1 / 3.0] => 0.197531, [10, 10, 0.2] => 1.0, [300, 1_000, 1 / 3.0] => 0.013255,
      [700, 2_000, 1 / 3.0] => 0.9457 }.each do |(count, trials, probability), expected|
      assert_in_delta expected, Culet::Statistics.binomial(count, trials, probability), 0.002
    end
  end

  private

  def at(counts) = Culet::Profile::Births.new(counts.to_h { |period, samples| [period, estimate(samples)] }, estimate(counts.sum(&:last)))

  # Periods with so many expected samples, and what was freed of the time before.
  def births(means, dropped: 0)
    counts = means.map { |mean| poisson(mean) }
    Culet::Profile::Births.new(counts.map { |count| estimate(count) }, estimate(counts.sum), estimate(dropped))
  end

  def estimate(samples)
    weight = 1 / (1 - Math.exp(-SIZE.fdiv(SAMPLE)))
    Culet::Profile::Estimate.new(samples, samples * weight, samples * weight * SIZE, samples * weight * (weight - 1) * SIZE * SIZE)
  end

  def poisson(mean)
    return [(mean + (Math.sqrt(mean) * gauss)).round, 0].max if mean > 200

    count = 0
    left = mean
    count += 1 while (left += Math.log(1 - @random.rand)).positive?
    count
  end

  def gauss = Math.sqrt(-2 * Math.log(1 - @random.rand)) * Math.cos(2 * Math::PI * @random.rand)
end
