# frozen_string_literal: true

module Culet
  # The numbers that decide what is a verdict and what is worth a change, for all tools.
  #
  # @api private
  module Thresholds
    # A change must free both a share of the whole and an amount (Gain).
    GAIN_SHARE = 0.05
    # Kind of change => least bytes: of a setting, which takes a restart, or of code.
    GAIN_BYTES = { setting: 4_000_000, code: 500_000 }.freeze
    # Share of the limit, below and above it, that counts as close.
    GAIN_BAND = 0.25
    # Minimum size of a cause for a verdict: bytes, and a share of the memory of all processes. A server's
    # memory varies by some 5 % within an hour; half as much again may be its allocator's usual reserve.
    CAUSE_BYTES = 8_000_000
    CAUSE_SHARE = 0.15
    # Code that never runs is there for good, and varies by nothing.
    CAUSE_SHARES = { "code" => 0.08 }.freeze
    # Free memory that any malloc keeps, as a part of what is in use.
    MALLOC_RESERVE = 0.08
    # Free memory and metadata that culet itself keeps, as a share of the memory in use: docs/benchmarks.md, the
    # workloads of threads and fragments.
    CULET_RESERVE = 0.06
    # Share of the copied blocks that stays shared on culet, whose frees do not write into blocks.
    CULET_SHARED = 0.8
    # Stack that the main thread of a server uses: 48 KB in Puma, more if the thread serves requests itself.
    STACK_RESERVE_BYTES = 256 << 10
    # Slots beyond the reachable ones that Ruby plans for, as a part of these: RUBY_GC_HEAP_FREE_SLOTS_GOAL_RATIO is 0.4
    # of all.
    HEAP_RESERVE = 0.67
    # Pages that Ruby takes for each size of slots before it collects for more: RUBY_GC_HEAP_INIT_BYTES of 4.1. The
    # 10,000 slots of each of five sizes that 3.3 to 4.0 take are as much together; earlier versions take less.
    INITIAL_HEAP_BYTES = 2_560 << 10
    # Free slots that a collector leaves, as a part of the live ones: RUBY_GC_HEAP_FREE_SLOTS_MIN_RATIO is 0.2.
    SLOT_RESERVE = 0.25
    # Free memory that glibc keeps between blocks of an arena that threads share, as a part of the pages in use at a
    # peak.
    ARENA_RESERVE = 0.25
    # Arenas of glibc that a limit leaves: the main one, and one for all other threads.
    ARENAS = 2
    # A process that is smaller is little more than Ruby itself.
    SMALL_BYTES = 16_000_000
    # From this share on, memory in use decides the size of a process.
    IN_USE_SHARE = 0.7
    # From this share of a memory limit on, the next peak may reach it.
    CLOSE_TO_LIMIT = 0.85
    private_constant :CLOSE_TO_LIMIT

    # @param used [Integer, nil] bytes of the limit that are in use; nil: unknown
    # @param limit [Integer] bytes
    def self.close_to_limit?(used, limit) = !used.nil? && used >= CLOSE_TO_LIMIT * limit
  end
end
