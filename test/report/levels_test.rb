# frozen_string_literal: true

require_relative "../scope/scope_helper"
require_relative "real_processes"
require "culet/tools/report"

# The levels add up to what is resident, whatever the process, and explain it.
class ReportLevelsTest < Minitest::Test
  include ScopeHelper
  include RealProcesses

  # Of what is resident, at most this may stay unexplained.
  UNEXPLAINED = 0.01

  def test_a_dozen_different_processes
    directory = new_folder
    @scratch = directory
    processes.each do |name, (command, environment, input)|
      with_process(command, environment || {}, input) { |pid| assert_explained(name, assert_adds_up(name, pid)) }
    end
  end

  def test_puma
    with_puma do |pid|
      snapshot = assert_adds_up("puma", pid)
      assert_operator snapshot.process.to_h["threads"], :>, 5
      assert_explained("puma", snapshot)
    end
  end

  private

  attr_reader :scratch

  # @return [Culet::Scope::Snapshot]
  def assert_adds_up(name, pid)
    snapshot = unmoved(name, pid)
    memory = Culet::SnapshotLevels.new(snapshot)
    assert_equal memory.rss_bytes, memory.levels.values.sum, name
    assert_operator memory.unexplained_bytes.abs, :<=, UNEXPLAINED * memory.rss_bytes, "#{name}: #{memory.levels}"
    assert_empty memory.levels.except("unexplained").select { |_, bytes| bytes.negative? }, name
    snapshot
  end

  # A process at rest still returns memory for a moment: it is read until nothing moves meanwhile.
  #
  # @return [Culet::Scope::Snapshot]
  def unmoved(name, pid)
    assert_settles("#{name}: nothing moves while it is read") do
      kernel = resident(pid)
      snapshot = Culet::Scope::Reader.new(pid, chunks: 0).snapshot
      after = resident(pid)
      assert_operator after, :<=, kernel, "#{name}: looking at it adds nothing to it"
      snapshot if [Culet::SnapshotLevels.new(snapshot).rss_bytes, after] == [kernel, kernel]
    end
  end

  # That everything adds up is worth something only if little is left to "other".
  def assert_explained(name, snapshot)
    memory = Culet::SnapshotLevels.new(snapshot)
    allocator = name[/ on (\w+)\z/, 1] || "glibc"
    assert_equal [allocator, %w[glibc culet].include?(allocator)], [snapshot.allocator.name, snapshot.allocator.blocks?], name
    assert_operator memory.levels.fetch("malloc_used"), :>, 0, name if snapshot.allocator.blocks?
    assert_equal snapshot.allocator.blocks?, memory.levels.fetch("malloc_unsplit").zero?, name
    return unless name.match?(/ruby|puma|worker/)

    assert_operator memory.levels.fetch("other"), :<=, 0.01 * memory.rss_bytes, "#{name}: #{memory.others}"
    assert_operator memory.levels.fetch("ruby_objects"), :>, 200_000, name
    assert_operator memory.levels.fetch("jit"), :>, 0, name if name.include?("JIT")
  end

  def resident(pid) = File.read("/proc/#{pid}/smaps").scan(/^Rss: +(\d+) kB/).sum { |kilobytes,| kilobytes.to_i } * 1024
end
