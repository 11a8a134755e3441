# frozen_string_literal: true

require "test_helper"
require "culet/model/statistics"

class CompareStatisticsTest < Minitest::Test
  Statistics = Culet::Statistics

  def setup
    @statistics = Statistics.new(seed: 7)
  end

  def test_median_of_odd_and_even_counts
    assert_equal 3, Statistics.median([5, 3, 1])
    assert_equal 2.5, Statistics.median([4, 2, 3, 1])
    assert_equal 3, Statistics.median([2, 4])
  end

  # The probabilities that tables of the test give for full separation: 2 / C(n + m, n).
  def test_rank_sum_probability_is_exact
    assert_in_delta 2.0 / 252, Statistics.rank_sum_probability([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert_in_delta 2.0 / 70, Statistics.rank_sum_probability([6, 7, 8, 9], [1, 2, 3, 4])
    assert_in_delta 2.0 / 20, Statistics.rank_sum_probability([1, 2, 3], [4, 5, 6])
    # U = 2 of 5 against 5: the table's critical value at 5 %, two-sided.
    assert_in_delta 8.0 / 252, Statistics.rank_sum_probability([1, 2, 3, 5, 6], [4, 7, 8, 9, 10])
    assert_equal 1.0, Statistics.rank_sum_probability([4, 4, 4], [4, 4, 4])
  end

  # Counted by trying every arrangement.
  def test_rank_sum_probability_with_ties_agrees_with_enumeration
    left = [1, 2, 2, 3]
    right = [2, 3, 3, 4, 5]
    assert_in_delta enumerated(left, right), Statistics.rank_sum_probability(left, right), 1e-12
  end

  def test_interval_encloses_the_median_and_stays_within_the_runs
    summary = @statistics.summary([10, 12, 11, 15, 13])
    assert_equal 12, summary["median"]
    assert_operator summary["low"], :>=, 10
    assert_operator summary["high"], :<=, 15
    assert_operator summary["low"], :<, 12
    assert_operator summary["high"], :>, 12
  end

  def test_one_run_has_no_interval_and_shows_nothing
    assert_equal({ "median" => 5, "low" => nil, "high" => nil }, @statistics.summary([5]))
    assert_equal "no difference shown", @statistics.compare({ 1 => 1.0 }, { 1 => 9.0 })["verdict"]
  end

  def test_the_same_seed_gives_the_same_interval
    values = [10.0, 12.5, 11.2, 15.1, 13.9]
    assert_equal @statistics.summary(values), Statistics.new(seed: 7).summary(values)
  end

  def test_clear_differences_have_a_verdict
    baseline = runs(100, 101, 99, 102, 98)
    assert_equal "smaller", @statistics.compare(runs(50, 51, 49, 52, 48), baseline)["verdict"]
    larger = @statistics.compare(runs(150, 151, 149, 152, 148), baseline)
    assert_equal "larger", larger["verdict"]
    assert_in_delta 1.5, larger["ratio"]["median"], 0.02
    assert_equal 5, larger["runs"]
  end

  def test_overlapping_runs_show_no_difference
    comparison = @statistics.compare(runs(100, 104, 97, 103, 99), runs(101, 98, 102, 100, 105))
    assert_equal "no difference shown", comparison["verdict"]
  end

  def test_three_runs_show_no_difference_however_clear
    assert_equal "no difference shown", @statistics.compare(runs(1, 1.1, 1.2), runs(9, 9.1, 9.2))["verdict"]
    assert_equal "smaller", @statistics.compare(runs(1, 1.1, 1.2, 1.3), runs(9, 9.1, 9.2, 9.3))["verdict"]
  end

  def test_less_than_one_percent_is_no_difference
    assert_equal "no difference shown", @statistics.compare(runs(995, 996, 995, 994, 995), runs(1000, 1001, 1000, 1002, 1000))["verdict"]
  end

  def test_identical_constants_are_no_difference
    comparison = @statistics.compare(runs(7, 7, 7, 7, 7), runs(7, 7, 7, 7, 7))
    assert_equal "no difference shown", comparison["verdict"]
    assert_equal 1.0, comparison["ratio"]["median"]
  end

  def test_only_runs_that_both_have_are_paired
    comparison = @statistics.compare({ 1 => 5.0, 3 => 6.0 }, { 1 => 10.0, 2 => 99.0, 3 => 10.0 })
    assert_equal 2, comparison["runs"]
    assert_in_delta 0.55, comparison["ratio"]["median"]
    assert_nil @statistics.compare({ 1 => 5.0 }, { 2 => 5.0 })
    assert_nil @statistics.compare({ 1 => 5.0 }, { 1 => 0.0 })
  end

  # The promise of the verdict: at most 5 % of comparisons of like with like call a difference.
  def test_false_positive_rate
    random = Random.new(2024)
    [4, 5, 8].each do |count|
      calls = Array.new(400) do
        left, right = Array.new(2) { (1..count).to_h { |run| [run, 100 * Math.exp(0.1 * normal(random))] } }
        @statistics.compare(left, right)["verdict"]
      end
      false_calls = calls.count { |verdict| verdict != "no difference shown" }
      assert_operator false_calls, :<=, 20, "#{false_calls} of 400 comparisons of like with like at #{count} runs"
    end
  end

  # A neighbour's load that slows whole rounds must not make differences appear.
  def test_false_positive_rate_with_disturbed_rounds
    random = Random.new(99)
    false_calls = Array.new(300) do
      rounds = (1..5).to_h { |run| [run, 100 * Math.exp(0.5 * normal(random))] }
      left, right = Array.new(2) { rounds.transform_values { |level| level * Math.exp(0.1 * normal(random)) } }
      @statistics.compare(left, right)["verdict"]
    end.count { |verdict| verdict != "no difference shown" }
    assert_operator false_calls, :<=, 15
  end

  # And what five runs do show: a difference of twice the scatter of 5 %.
  def test_power
    random = Random.new(5)
    found = Array.new(200) do
      left = (1..5).to_h { |run| [run, 90 * Math.exp(0.02 * normal(random))] }
      right = (1..5).to_h { |run| [run, 100 * Math.exp(0.02 * normal(random))] }
      @statistics.compare(left, right)["verdict"]
    end.count("smaller")
    assert_operator found, :>=, 190
  end

  private

  def runs(*values) = values.each_with_index.to_h { |value, index| [index + 1, value] }

  # Irwin-Hall: twelve uniform numbers, close enough to a normal one.
  def normal(random) = Array.new(12) { random.rand }.sum - 6

  def enumerated(left, right)
    all = left + right
    ranks = all.map { |value| all.count { |other| other < value } + ((all.count(value) + 1) / 2.0) }
    expected = left.size * ranks.sum / all.size
    distance = (ranks.first(left.size).sum - expected).abs
    arrangements = (0...all.size).to_a.combination(left.size).to_a
    arrangements.count { |chosen| (ranks.values_at(*chosen).sum - expected).abs >= distance - 1e-9 }.fdiv(arrangements.size)
  end
end
