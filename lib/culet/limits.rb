# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/limits")

require_relative "model/sharing/breakdown"
require_relative "tools/limits/memory_growth"
require_relative "tools/limits/private_memory"
require_relative "tools/report"
require_relative "scope"
require_relative "text/size"

module Culet
  # Memory limits as assertions, for any test framework; `culet/minitest` and `culet/rspec` install them. Those of a
  # size measure one process once and explain a failure by level.
  #
  # The including class defines `culet_assert(passed, &message)`, which counts an assertion and fails with the block's
  # text.
  module Limits
    # Fails when a process has more private memory than the limit. Pages shared with other processes do not count:
    # neither libraries, nor what a forked worker still shares with its parent.
    #
    # @param limit [Integer, String] bytes, or "80MB"
    # @param pid [Integer] a process, this one by default
    # @yield what to do before the measurement
    # @return [Object] the result of culet_assert
    # @raise [ArgumentError] when the limit is not a size
    # @raise [Culet::Error] when the process cannot be read
    def assert_rss_below(limit, pid: ::Process.pid)
      most = Limits.bytes(limit)
      yield if block_given?
      memory = PrivateMemory.new(pid)
      culet_assert(memory.private_bytes < most) { memory.explanation(most) }
    end

    # Forks, runs the block in the child, and fails when the child then shares too little of what it inherited.
    #
    # @param at_least [Float] share of the inherited bytes that must still be shared, 0 to 1
    # @param max_private [Integer, String, nil] limit of the child's private memory in bytes, or "80MB"; nil: none
    # @yield in the child: the work of a worker
    # @return [Object, nil] the result of the last culet_assert
    # @raise [ArgumentError] without a block, or when a limit is invalid
    # @raise [Culet::Error] when the block raises, or a process cannot be read
    def assert_shared_after_fork(at_least: 0.9, max_private: nil, &work)
      raise ArgumentError, "a block is required: the work of the forked process" unless work
      unless at_least.is_a?(Numeric) && at_least.between?(0, 1)
        raise ArgumentError, "at_least is a share, e.g. 0.9, not #{at_least.inspect}"
      end

      most = max_private && Limits.bytes(max_private)
      after = AfterFork.new(&work)
      culet_assert(after.kept >= at_least) { after.explanation(at_least) }
      culet_assert(after.private_bytes <= most) { after.explanation_of_private(most) } if most
    end

    # Fails when the memory that this process has in use grows with each call of the block: what malloc has given out,
    # and Ruby's objects. After a warm-up the calls are made in 20 batches, and the process is collected and read after
    # each. Growth is more than 4 bytes a call in 16 of the 20 batches, and again in a second series: without growth
    # the assertion fails in less than one of 10,000 cases. Where the allocator does not tell what is in use (mimalloc,
    # musl) Ruby's objects alone are judged, and a warning says so.
    #
    # @param times [Integer] calls of a series, at least 20; where nothing grows, one series and the warm-up are made
    # @param warm_up [Integer, nil] calls before that, at least; nil: a quarter of `times`
    # @yield the work; nothing else should allocate meanwhile
    # @return [Object] the result of culet_assert
    # @raise [ArgumentError] without a block, or when a number is invalid
    def assert_no_memory_growth(times: 200, warm_up: nil, &work)
      growth = MemoryGrowth.new(times: times, warm_up: warm_up, &work)
      Limits.warn_of(growth)
      culet_assert(!growth.grows?) { growth.explanation }
    end

    # Writes why a verdict of growth covers less than it could, once.
    #
    # @api private
    # @param growth [MemoryGrowth]
    def self.warn_of(growth)
      return if @warned || growth.restriction.nil?

      @warned = true
      Native.warn(growth.restriction)
    end

    # @api private
    # @param limit [Integer, String]
    # @return [Integer] bytes
    # @raise [ArgumentError] when it is not a size
    def self.bytes(limit)
      Text::Size.parse(limit) ||
        raise(ArgumentError, "a limit is a number of bytes or a size such as \"80MB\", not #{limit.inspect}")
    end
  end
end
