# frozen_string_literal: true

require_relative "target_helper"

# Processes with many threads, or without the main one.
class ScopeThreadsTest < Minitest::Test
  include TargetHelper

  def test_a_process_whose_main_thread_has_ended_is_read
    with_headless do |pid|
      Culet::Scope::Reader::MODES.each_key do |mode|
        snapshot = read(pid, mode: mode)
        assert_equal [pid, []], [snapshot.pid, snapshot.problems]
        assert_operator snapshot.process.rss_bytes, :>, 20 << 20
        assert_equal "blocks", snapshot.allocator.level
      end
    end
  end

  def test_its_figures_are_told
    with_headless do |pid|
      assert_operator Culet::Processes::Memory.rss_bytes(pid), :>, 20 << 20
      assert_operator Culet::Processes::Memory.pss_bytes(pid), :>, 20 << 20
      assert_operator Culet::Processes::Memory.peak_rss_bytes(pid), :>, 20 << 20
      assert_settles { Culet::Processes::Cpu.state(pid) == "S" }
      live = Culet::Processes::Live.find(pid)
      assert_equal "headless", File.basename(live.executable)
      refute_empty live.mappings
      assert_operator live.status_fields.fetch("VmRSS").to_i, :>, 20 << 10
    end
  end

  def test_long_pauses_are_announced
    with_target("threads") do |program|
      with_talker(program, 400) do |pid|
        _, err = assert_culet_success("report", "--pause-ms", "5", pid.to_s, env: NEUTRAL)
        assert_match(/\Aculet-scope: note: process #{pid} has 400 threads; stopping and releasing them .+ longer than 5 ms; --live reads .+\n\z/, err)
        _, err, = run_culet("report", "--live", pid.to_s, env: NEUTRAL)
        assert_empty err
      end
    end
  end

  private

  def with_headless(&block)
    with_target("headless") do |program|
      with_talker(program, 20, &block)
    end
  end
end
