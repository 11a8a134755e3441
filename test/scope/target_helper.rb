# frozen_string_literal: true

require_relative "region_blocks"
require_relative "scope_helper"
require "culet/system/processes"

# Programs made to be looked at: they rest, or stop themselves after telling what there is to find.
module TargetHelper
  include ScopeHelper

  TARGETS = File.expand_path("targets", __dir__)

  # @param name [String] of a C file in targets/
  # @yieldparam program [String] it, compiled
  def with_target(name)
    in_directory do |directory|
      program = File.join(directory, name)
      source = File.join(TARGETS, "#{name}.c")
      _, err, status = run_program("cc", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-o", program, source, "-ldl")
      assert_equal [true, ""], [status.success?, err]
      yield program
    end
  end

  # Starts a program that prints until a line `last` (a String, or a Regexp that it matches), and ends it.
  #
  # @yieldparam pid [Integer]
  # @yieldparam lines [Array<String>] what it printed up to there
  # @yieldparam output [IO] what it prints later
  def with_talker(*command, env: {}, last: "end")
    with_started(*command, env: TestHelper::NEUTRAL.merge(env)) do |pid, out|
      lines = []
      until last === lines.last
        assert out.wait_readable(TestHelper::PATIENCE_SECONDS), "#{command.first} printed nothing more after #{lines.last.inspect}"
        line = out.gets or flunk "#{command.join(" ")} ended after #{lines.last(3).inspect}: #{await_end(pid)}"
        lines << line.chomp
      end
      yield pid, lines, out
    end
  end

  # Starts a program that prints until a line `last` and then stops itself; yields, as with_talker does, once it has
  # stopped.
  def with_frozen(*command, env: {}, last: "end")
    with_talker(*command, env: env, last: last) do |pid, lines, output|
      assert_settles { File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] == "T" }
      yield pid, lines, output
    end
  end

  # @return [Culet::Scope::Snapshot]
  def read(pid, **options) = Culet::Scope::Reader.new(pid, **options).snapshot

  # Asserts that regions do not overlap, and that blocks, where they are told, cover them.
  def assert_whole(snapshot)
    snapshot.regions.sort_by(&:start).each_cons(2) { |one, two| assert_operator one.end, :<=, two.start, [one.to_h, two.to_h].inspect }
    snapshot.regions.each do |region|
      blocks = RegionBlocks.of(region)
      assert_equal region.bytes, blocks.sum { |_, bytes, _| bytes }, region.to_h.inspect if blocks.any?
    end
  end

  # @return [Integer] bytes of the pages in memory that these regions touch, by what the mappings tell
  def resident_bytes(snapshot, regions)
    page = snapshot.process.page_bytes
    present = snapshot.mappings.flat_map { |mapping| present_ranges(mapping, page) }
    regions.sum do |region|
      present.sum { |first, past| [[past, region.end].min - [first, region.start].max, 0].max }
    end
  end

  def present_ranges(mapping, page)
    at = mapping.start
    mapping.page_runs.filter_map do |count, bits|
      first = at
      at += count * page
      [first, at] if bits.anybits?(1)
    end
  end

  # @return [Integer] its resident bytes, from the kernel's exact count
  def rss_bytes(pid) = File.read("/proc/#{pid}/smaps_rollup")[/^Rss:\s+(\d+)/, 1].to_i * 1024
end
