# frozen_string_literal: true

require "limit/limit_helper"

# `culet limit`.
class LimitVerbTest < Minitest::Test
  include LimitHelper

  KEYS = %w[limit_bytes source used_bytes headroom_bytes steps].freeze
  PROGRAM = "Culet::Limit.on(:pressure) { $cache = nil }; $cache = 'x' * 90_000_000; sleep 0.05 while $cache; puts; $stdout.flush; sleep"

  def test_a_process_that_keeps_its_limit_reports_the_steps
    with_real_group(100 * MEBIBYTE) do |folder|
      with_member(folder, "-rculet/limit", "-e", PROGRAM) do |pid|
        document = json(pid)
        assert_equal [pid, true, 100 * MEBIBYTE, "control group #{folder}"], document.values_at("pid", "kept", "limit_bytes", "source")
        assert_equal 100 * MEBIBYTE, document["used_bytes"] + document["headroom_bytes"]
        assert_includes document["steps"].map { |step| step["step"] }, "callbacks"
        assert_operator document["steps"].first["at"], :>, Time.now.to_f - 120
        out, err, status = run_culet("limit", pid.to_s)
        assert_equal ["", 0], [err, status.exitstatus]
        assert_match(/^limit +100 MiB, control group/, out)
        assert_match(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  callbacks +/, out)
      end
    end
  end

  def test_another_process_is_read_from_outside
    with_real_group(100 * MEBIBYTE) do |folder|
      with_member(folder, "-e", WAITING) do |pid|
        document = json(pid)
        assert_equal [pid, false, 100 * MEBIBYTE, "control group #{folder}", []], document.values_at("pid", "kept", "limit_bytes", "source", "steps")
        assert_operator document["used_bytes"], :>, MEBIBYTE
        assert_match(/The process does not keep the limit itself/, run_culet("limit", pid.to_s).first.gsub(/\s+/, " "))
      end
    end
  end

  def test_without_a_process_it_is_about_this_shells
    out, err, status = run_culet("limit", "--json")
    assert_equal ["", 0], [err, status.exitstatus]
    assert_equal KEYS - JSON.parse(out).keys, []
  end

  def test_wrong_usage_and_no_such_process
    { %w[limit 1 2] => [2, /takes at most one process number/], %w[limit 999999999] => [1, /there is no process 999999999|has ended/],
      %w[limit 1 -- true] => [2, /does not run a command/] }.each do |words, (status, sentence)|
      assert_sentence(sentence, *words, status: status)
    end
  end

  private

  def json(pid)
    out, err, status = run_culet("limit", pid.to_s, "--json")
    assert_equal ["", 0], [err, status.exitstatus]
    JSON.parse(out).tap { |document| assert_empty KEYS - document.keys }
  end

  def with_member(folder, *words, &block)
    with_program(*in_cgroup(folder, RbConfig.ruby, "-I#{ROOT}/lib", *words), err: File::NULL, &block)
  end
end
