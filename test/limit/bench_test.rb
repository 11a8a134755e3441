# frozen_string_literal: true

require_relative "limit_helper"
require_relative "../../bench/preamble"
require_relative "../../bench/limit/group"

# The control groups of bench/limit/clusters and bench/limit/programs.
class LimitBenchTest < Minitest::Test
  include CgroupHelper

  def test_a_group_has_a_limit_and_what_is_run_in_it
    reason = no_cgroups
    skip reason if reason
    made = Limits::Group.with(64 << 20) do |group|
      out, = assert_success(*group.command("cat", "/proc/self/cgroup"))
      assert_includes out, "/#{File.basename(group.folder)}\n"
      assert_equal 0, group.kills
      assert_includes 0.0..1.0, group.used_share
      group.folder
    end
    refute File.exist?(made), "#{made} is still there"
  end

  def test_a_program_beyond_the_limit_is_killed
    reason = no_cgroups
    skip reason if reason
    Limits::Group.with(32 << 20) do |group|
      _, _, status = run_program(*group.command(RbConfig.ruby, "-e", "'x' * (200 << 20)"), env: NEUTRAL)
      assert_equal [Signal.list.fetch("KILL"), 1], [status.termsig, group.kills]
    end
  end
end
