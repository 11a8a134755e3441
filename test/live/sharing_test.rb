# frozen_string_literal: true

require "test_helper"
require "culet/model/sampler/sharing"

# What Culet::Live::Sharing says between two readings of smaps_rollup.
class SharingTest < Minitest::Test
  include TestHelper

  PAGE = Culet::Processes::Memory::PAGE_BYTES
  # A heap that is shared by fork, and what the child does to it, each time it gets a line.
  CHILD = <<~RUBY
    $stdout.sync = true
    size = 20_000_000
    heap = "x" * size
    fork do
      ARGV.each do |step|
        $stdout.puts Process.pid
        $stdin.gets
        case step
        when "write" then (0...(size / 2)).step(4096) { |at| heap.setbyte(at, 121) }
        when "write more" then (size / 2...size).step(4096) { |at| heap.setbyte(at, 122) }
        when "allocate" then $kept = "y" * 10_000_000
        end
      end
      $stdout.puts Process.pid
      $stdin.gets
    end
    Process.wait
  RUBY

  def test_new_memory_is_private
    with_child("allocate") do |child|
      child.read
      child.step
      child.assert_like_the_kernel(self, copied: 0.0, least: 9_000_000)
    end
  end

  def test_faults_without_new_memory_are_copies_as_far_as_they_were_before
    with_child("write", "write more") do |child|
      child.read
      child.step
      child.assert_like_the_kernel(self, copied: 1.0, least: 9_000_000)
      child.read
      assert_in_delta 1.0, child.sharing.copied, 0.2
      child.step
      child.assert_like_the_kernel(self, copied: 0.0, least: 18_000_000)
    end
  end

  def test_copies_are_no_more_than_what_was_shared
    sharing = Culet::Live::Sharing.new
    sharing.note(entry(1, own: 100 * PAGE, shared: 50 * PAGE), stat(faults: 0, resident: 150 * PAGE))
    memory = sharing.memory(stat(faults: 1000, resident: 150 * PAGE), 1.0)
    assert_equal [150 * PAGE, 0, 150 * PAGE], memory.values_at("private_bytes", "shared_bytes", "rss_bytes")
    assert_equal 50 * PAGE, memory["growth_bytes"]
  end

  def test_memory_that_comes_back_is_no_copy
    sharing = Culet::Live::Sharing.new
    shared = { shared: 500 * PAGE }
    sharing.note(entry(1, own: 100 * PAGE, **shared), stat(faults: 0, resident: 600 * PAGE))
    assert_nil sharing.copied
    sharing.note(entry(2, own: 110 * PAGE, **shared), stat(faults: 210, resident: 610 * PAGE))
    assert_in_delta 0.0, sharing.copied
    memory = sharing.memory(stat(faults: 410, resident: 610 * PAGE), 1.0)
    assert_equal [110 * PAGE, 500 * PAGE], memory.values_at("private_bytes", "shared_bytes")
  end

  def test_returned_memory_makes_no_figure_negative
    sharing = Culet::Live::Sharing.new
    sharing.note(entry(1, own: 10 * PAGE, shared: 90 * PAGE), stat(faults: 0, resident: 100 * PAGE))
    memory = sharing.memory(stat(faults: 0, resident: 0), 0.0)
    assert_equal [0, 0, 0], memory.values_at("rss_bytes", "private_bytes", "pss_bytes")
  end

  def test_what_did_nothing_need_not_be_read
    sharing = Culet::Live::Sharing.new
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    first = stat(faults: 5, resident: 100 * PAGE)
    assert_equal 0, sharing.change(first)
    sharing.note(entry(now, own: 10 * PAGE, shared: 90 * PAGE), first)
    assert_equal 0, sharing.change(first)
    assert_operator sharing.change(stat(faults: 6, resident: 100 * PAGE)), :>=, 1
    assert_operator sharing.change(stat(faults: 5, resident: 99 * PAGE)), :>, 0
    sharing.note(entry(now - 3600, own: 10 * PAGE, shared: 90 * PAGE), first)
    assert_operator sharing.change(first), :>, 0
  end

  private

  def entry(time, own:, shared:)
    figures = { "rss_bytes" => own + shared, "pss_bytes" => own + (shared / 2), "swap_bytes" => 0, "private_bytes" => own, "shared_bytes" => shared }
    Culet::Processes::Rollups::Entry.new(time, 1, figures)
  end

  def stat(faults:, resident:) = Culet::Processes::Stat::Reading.new("S", 1, faults, 0, 1, 1, 1 << 30, resident, 0)

  # A forked child that takes steps.
  class Child
    attr_reader :sharing

    def initialize(input, output)
      @input = input
      @output = output
      @sharing = Culet::Live::Sharing.new
      wait
      @stat = Culet::Processes::Stat.new(@pid)
    end

    # Lets it take a step.
    def step
      @input.puts
      wait
    end

    def read
      @reads = @reads.to_i + 1
      @sharing.note(Culet::Processes::Rollups::Entry.new(@reads, 1, Culet::Processes::Memory.rollup(@pid)), @stat.read)
    end

    # What it says without a new reading.
    def assert_like_the_kernel(test, copied:, least:)
      memory = @sharing.memory(@stat.read, copied)
      rollup = Culet::Processes::Memory.rollup(@pid)
      own = rollup["private_bytes"]
      test.assert_operator own, :>, least
      test.assert_in_delta own, memory["private_bytes"], 1_000_000
      test.assert_in_delta rollup["rss_bytes"], memory["rss_bytes"], 1_000_000
      test.assert_in_delta rollup["shared_bytes"], memory["shared_bytes"], 1_000_000
    end

    def close = @stat&.close

    private

    def wait = @pid = Integer(@output.gets)
  end

  def with_child(*steps)
    with_fed(RbConfig.ruby, "-e", CHILD, *steps) do |_, output, input|
      child = Child.new(input, output)
      yield child
    ensure
      child&.close
    end
  end
end
