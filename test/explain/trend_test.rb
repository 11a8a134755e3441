# frozen_string_literal: true

require_relative "../test_helper"
require "culet/model/trend"

# Rates of the test and of the interval, on simulated series.
class TrendTest < Minitest::Test
  ROUNDS = 1_000

  def setup
    @random = Random.new(1)
  end

  def test_a_series_without_a_trend_rises_in_one_of_a_hundred
    rising = ROUNDS.times.count { trend(Array.new(9) { noise }).rising? }
    assert_operator rising, :<=, 20
  end

  def test_a_trend_of_the_size_of_the_noise_is_seen
    rising = ROUNDS.times.count { trend(Array.new(9) { |at| at + noise }).rising? }
    assert_operator rising, :>=, 990
  end

  def test_the_interval_has_the_rate
    inside = ROUNDS.times.count do
      low, high = trend(Array.new(9) { |at| (2 * at) + (10 * noise) }).interval
      (low..high).cover?(2)
    end
    assert_operator inside, :>=, 930
  end

  def test_the_rate_is_that_of_a_line_and_survives_an_outlier
    assert_in_delta 3.0, trend(Array.new(7) { |at| 3 * at }).rate
    assert_in_delta 3.0, trend(Array.new(9) { |at| at == 4 ? 1_000 : 3 * at }).rate, 0.1
  end

  def test_few_points_never_rise
    refute_predicate trend([1, 2, 3, 4]), :rising?
    assert_predicate trend([1, 2, 3, 4, 5]), :rising?
    assert_equal [0.0, 0.0], [trend([]).rate, trend([7]).rate]
    assert_equal [-Float::INFINITY, Float::INFINITY], trend([1, 2]).interval
  end

  def test_equal_values_do_not_rise
    refute_predicate trend([5] * 12), :rising?
  end

  def test_floors_are_the_lowest_of_each_span
    garbage = trend([10, 40, 70, 12, 42, 72, 14, 44, 74])
    assert_equal [10, 12, 14], garbage.floors(3).points.map(&:last)
    assert_equal 9, garbage.floors(5).points.size, "too few points for five spans"
  end

  private

  def trend(values) = Culet::Trend.new(values.each_with_index.map { |value, at| [at.to_f, value] })

  def noise = @random.rand - 0.5
end
