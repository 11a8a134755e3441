# frozen_string_literal: true

# Alone: what is served under load wants the processors.

require "test_helper"

# The soak of the memory profile: some seconds, and hours.
class ProfileSoakTest < Minitest::Test
  PROFILE = File.expand_path("profile", __dir__)
  RUNS = [[], %w[--ractors], (%w[--ruby=--yjit] if defined?(RubyVM::YJIT))].compact.freeze

  def test_some_seconds
    skip_unless_all
    assert_survived("0.2")
  end

  def test_an_hour_of_each
    skip_unless_all
    RUNS.each { |words| assert_survived("60", *words) }
  end

  def test_wrong_usage_is_reported
    [["--minutes", "0"], ["more"]].each do |words|
      _, error, status = run_program(PROFILE, *words)
      assert_equal 2, status.exitstatus
      assert_match(%r{\Atest/soak/profile: (?:invalid|needless) argument: .*\n\z}, error)
    end
  end

  private

  def assert_survived(minutes, *words)
    out, error, status = run_program(PROFILE, "--minutes", minutes, *words, env: NEUTRAL, patience: (Float(minutes) * 60) + 600)
    skip error[%r{^test/soak/profile: (.+)$}, 1] if status.exitstatus == 1 && error.include?("gems could not be installed")
    assert_predicate status, :success?, error
    assert_match(/\A[1-9]\d* requests, [1-9]\d* readings, \d+ profiles; [1-9]\d* samples, 0 without room\n\z/, out)
  end
end
