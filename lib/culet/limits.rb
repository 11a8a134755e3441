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
  # Memory limits as assertions, for any test framework; `culet/minitest` and `culet/rspec` install them. The message of
  # a failed size limit has the levels of the process.
  #
  # The including class defines `culet_assert(passed, &message)`, which counts an assertion and fails with the block's
  # text.
  module Limits
    # Fails when a process has more private memory than the limit. Pages shared with other processes, such as libraries
    # and the inherited pages of a forked worker, do not count.
    #
    # @param limit [Integer, String] bytes, or "80MB"
    # @param pid [Integer] a process, this one by default
    # @yield before the measurement
    # @return [Object] the result of culet_assert
    # @raise [ArgumentError] when the limit is not a size
    # @raise [Culet::Error] when the process cannot be read
    def assert_rss_below(limit, pid: ::Process.pid)
      most = Limits.bytes(limit)
      yield if block_given?
      memory = PrivateMemory.new(pid)
      culet_assert(memory.private_bytes < most) { memory.explanation(most) }
    end

    # Forks, runs the block in the child, and fails when the child then shares too little of its inherited memory.
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

    # Fails when the memory in use of this process, blocks of malloc and Ruby's objects, grows with each call of the
    # block. After a warm-up the calls run in 20 batches, each followed by a collection and a reading. The assertion
    # fails if 16 of the 20 batches grow by more than 4 bytes a call, in each of two series; without growth this happens
    # in less than one of 10,000 cases. On allocators that do not report the memory in use (mimalloc, musl) the
    # assertion measures Ruby's objects only, and warns.
    #
    # @param times [Integer] calls of a series, at least 20; the second series runs only if the first one has grown
    # @param warm_up [Integer, nil] minimum number of calls before the first series; nil: a quarter of `times`
    # @yield the work; no other thread should allocate meanwhile
    # @return [Object] the result of culet_assert
    # @raise [ArgumentError] without a block, or when a number is invalid
    def assert_no_memory_growth(times: 200, warm_up: nil, &work)
      growth = MemoryGrowth.new(times: times, warm_up: warm_up, &work)
      Limits.warn_of(growth)
      culet_assert(!growth.grows?) { growth.explanation }
    end

    # Warns once if the growth of malloc was not measured.
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
