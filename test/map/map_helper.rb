# frozen_string_literal: true

require "test_helper"
require "culet/render/map"
require_relative "synthetic"

# What the tests of the map share.
module MapHelper
  HEAP = 0x5555_0000_0000
  ARENA = 0x7f30_0000_0000
  BLOCKS = 0x7f40_0000_0000
  RUBY = 0x7f20_0000_0000
  STACK = 0x7f50_0000_0000
  LIBRARY = 0x7f60_0000_0000

  # A process with a bit of everything.
  def self.stream(name: "puma", seed: 1, pages: 700)
    Synthetic.new(name: name, seed: seed).tap do |process|
      process.ruby(start: RUBY, count: 3)
      process.heap(arena: 0, start: HEAP, pages: pages, kind: "main", chunks: true, shared: 0.3)
      process.heap(arena: 1, start: ARENA, pages: 300, chunks: true)
      4.times { |index| process.heap(arena: 0, start: BLOCKS + (index << 24), pages: 3 + index, kind: "mmapped") }
      process.map(start: STACK, pages: 2048, bits: ([0] * 2040) + ([5] * 8), use: "stack", label: "thread worker (7)")
      process.map(start: LIBRARY, pages: 40, bits: ([9] * 25) + ([0] * 10) + ([9] * 5), use: "library", path: "/usr/lib/libx.so", label: "libx.so")
    end
  end

  def self.snapshot(...) = Culet::Scope::Builder.new(stream(...).to_s).call

  # Yields the name of a snapshot file with these streams in it.
  def with_snapshot_file(*streams)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "some.snapshot")
      File.binwrite(path, streams.first.snapshot + streams.drop(1).map { |one| one.snapshot.delete_prefix("culet-snapshot 1\n") }.join)
      yield path, folder
    end
  end

  # A Ruby that holds some memory in several arenas.
  HOLDING = <<~RUBY
    File.write("/proc/self/comm", "<b>x</b>")
    threads = Array.new(4) do
      Thread.new { Thread.current[:kept] = Array.new(20_000) { "x" * rand(24..700) }.each_slice(3).map(&:first); Thread.stop }
    end
    Thread.pass until threads.all?(&:stop?)
    GC.start
    puts :up
    $stdout.flush
    sleep
  RUBY
end
