# frozen_string_literal: true

require "test_helper"
require "json"

# bench/trims/puma: its words, and with --all a short measurement.
# Alone: two servers and what loads them want two processors to themselves.
class TrimPumaTest < Minitest::Test
  COMMAND = "#{ROOT}/bench/trims/puma".freeze

  def test_wrong_usage_is_told
    { ["--workloads", "soup"] => /soup is none of rack, rails/, ["--allocator", "none"] => /no allocator "none"/ }.each do |words, sentence|
      out, err, status = run_program(COMMAND, *words)
      assert_equal [2, ""], [status.exitstatus, out]
      assert_match(sentence, err)
    end
  end

  def test_a_short_measurement
    skip "half a minute: bin/test --all runs it" unless all_tests?
    directory = new_folder
    file = File.join(directory, "result.json")
    out, = assert_success(COMMAND, *%w[--workloads majors --rounds 1 --boots 1 --seconds 4 --connections 2 --json], file, patience: 600)
    assert_match(/^CPU per request, ms +[\d.]+ +[\d.]+ +[\d.]+$/, out)
    result = JSON.parse(File.read(file)).first
    assert_equal [2, 2], result["stretches"].values_at("with", "without").map(&:size)
    assert_operator result["trims"].sum { |one| one["trims"] }, :>, 0, "the server with culet/auto trimmed"
    assert_operator result["metrics"]["rest_pss_bytes"]["ratio"]["median"], :<, 1
  end
end
