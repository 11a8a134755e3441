# frozen_string_literal: true

require "test_helper"
require "culet"
require "culet/runtime/sidekiq/quiet_periods"

# When a Sidekiq process is quiet; without Sidekiq.
class QuietPeriodsTest < Minitest::Test
  def setup
    @periods = Culet::Sidekiq::QuietPeriods.new
  end

  def test_nothing_is_done_before_the_first_job
    assert_equal [nil, nil, nil], beats(3)
  end

  def test_once_after_work_when_a_whole_beat_had_no_job
    assert_equal "result", @periods.during_job { "result" }
    worked, quiet, still_quiet = beats(3)
    assert_nil worked, "a job ran since the beat before"
    assert_kind_of Integer, quiet
    assert_nil still_quiet
    @periods.during_job { nil }
    assert_equal [NilClass, Integer], beats(2).map(&:class)
  end

  def test_a_job_that_takes_long_is_no_quiet_period
    @periods.during_job { assert_equal [nil, nil, nil], beats(3) }
    assert_equal [NilClass, Integer], beats(2).map(&:class)
  end

  def test_one_of_two_jobs_is_over
    @periods.during_job do
      @periods.during_job { nil }
      assert_equal [nil, nil, nil], beats(3)
    end
  end

  def test_a_job_that_fails_is_over_too
    assert_raises(IOError) { @periods.during_job { raise IOError, "no more" } }
    assert_equal [NilClass, Integer], beats(2).map(&:class)
  end

  def test_the_middleware_hands_on_the_job
    middleware = Culet::Sidekiq::Middleware.new(@periods)
    assert_equal 7, middleware.call(Object.new, {}, "default") { 7 }
    assert_equal [NilClass, Integer], beats(2).map(&:class)
  end

  private

  def beats(count) = Array.new(count) { @periods.beat }
end
