# frozen_string_literal: true

# Alone: the hour of load that --all asks for wants the processors.

require "test_helper"
require "json"
require_relative "trend"

# The soak: its arithmetic, on made-up samples; and with --all the hour itself.
class SoakTest < Minitest::Test
  SOAK = File.expand_path("soak", __dir__)
  MEBIBYTE = 1 << 20

  def test_a_flat_figure_with_noise_and_a_warm_up_is_flat
    trend = trend_of { |minute| minute < 10 ? 60 + (4 * minute) : 100 + Random.new(minute).rand(-6..6) }
    assert_empty trend.objections
    assert_in_delta 0.0, trend.slope, 0.005
    assert_in_delta 100 * MEBIBYTE, trend.median_bytes, 3 * MEBIBYTE
  end

  def test_a_leak_of_two_percent_in_ten_minutes_is_found
    trend = trend_of { |minute| 100 * (1 + (0.002 * minute)) + Random.new(minute).rand(-1..1) }
    assert_in_delta 0.0187, trend.slope, 0.003
    assert_match(/grows by 1\.\d+ % per ten minutes/, trend.objections.join)
  end

  def test_a_step_up_late_is_found_by_the_quarters
    trend = trend_of { |minute| minute < 50 ? 100 : 110 }
    assert_in_delta 1.1, trend.ratio, 0.001
    assert_match(/1\.100 times the second's median/, trend.objections.join)
  end

  def test_peaks_do_not_count
    trend = trend_of { |minute| (minute % 7).zero? ? 180 : 100 }
    assert_empty trend.objections
    assert_equal 100 * MEBIBYTE, trend.median_bytes
  end

  def test_what_shrinks_is_no_leak
    trend = trend_of { |minute| 200 - minute }
    assert_operator trend.slope, :<, 0
    assert_empty trend.objections
  end

  def test_too_few_samples_say_nothing
    assert_raises(ArgumentError) { Soak::Trend.new([[0.0, 1], [1.0, 1]]) }
  end

  def test_wrong_usage_is_told
    { ["--minutes", "0"] => /--minutes takes a number above 0\.3/, ["--allocator", "nothing"] => /there is no allocator "nothing"/ }.each do |words, sentence|
      _, error, status = run_program(SOAK, *words)
      assert_equal 2, status.exitstatus
      assert_match(sentence, error)
    end
  end

  def test_an_hour_of_mixed_work_stays_flat
    skip "an hour: bin/test --all runs it" unless all_tests?
    text, error, status = run_program(SOAK, "--json", env: NEUTRAL, patience: 4_500)
    skip error[%r{^test/soak/soak: (.+)$}, 1] if status.exitstatus == 1 && error.match?(/no load generator|gems could not be installed/)
    assert status.success?, error
    assert_operator JSON.parse(text).fetch("requests"), :>, 100_000
  end

  private

  # A sample every two seconds of an hour; the block says how many MiB there are in a minute.
  def trend_of
    Soak::Trend.new(Array.new(1_800) { |i| [i * 2.0, (yield(i / 30) * MEBIBYTE).round] })
  end
end
