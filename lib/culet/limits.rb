# frozen_string_literal: true

require_relative "../culet"
require_relative "tools/cow/breakdown"
require_relative "tools/limits/after_fork"
require_relative "tools/limits/held"
require_relative "tools/report"
require_relative "scope"
require_relative "text/size"

module Culet
  # Limits on memory as assertions, for any test framework: `culet/minitest` and `culet/rspec` bring them. Each measures
  # once, what one process has for itself, and explains a failure with where that is.
  #
  # Who includes this has a method `culet_assert(passed, &message)` that counts an assertion and fails with the block's text.
  module Limits
    # Fails when a process has more memory for itself than that. Pages that it shares with others are not its own: neither
    # libraries, nor what a forked worker still shares with its parent.
    #
    # @param limit [Integer, String] bytes, or "80MB"
    # @param pid [Integer] a process, this one by default
    # @yield what to do before it is measured
    # @raise [ArgumentError] when the limit is no size
    # @raise [Culet::Error] when the process cannot be read
    def assert_rss_below(limit, pid: ::Process.pid)
      most = Limits.bytes(limit)
      yield if block_given?
      held = Held.new(pid)
      culet_assert(held.private_bytes < most) { held.explanation(most) }
    end

    # Forks, has the child do something, and fails when it shares too little of what it inherited afterwards.
    #
    # @param at_least [Float] the share of inherited bytes that has to be shared still, 0 to 1
    # @param max_private [Integer, String, nil] bytes, or "80MB", that the child may have for itself
    # @yield in the child: what a worker does
    # @raise [ArgumentError] without a block, or when a limit is none
    # @raise [Culet::Error] when the block raises, or a process cannot be read
    def assert_shared_after_fork(at_least: 0.9, max_private: nil, &work)
      raise ArgumentError, "give a block: what the forked process does" unless work
      raise ArgumentError, "at_least is a share, e.g. 0.9, not #{at_least.inspect}" unless at_least.is_a?(Numeric) && at_least.between?(0, 1)

      most = max_private && Limits.bytes(max_private)
      after = AfterFork.new(&work)
      culet_assert(after.kept >= at_least) { after.explanation(at_least) }
      culet_assert(after.private_bytes <= most) { after.explanation_of_private(most) } if most
    end

    # @param limit [Integer, String]
    # @return [Integer] bytes
    # @raise [ArgumentError] when it is no size
    def self.bytes(limit) = Text::Size.parse(limit) || raise(ArgumentError, "a limit is a number of bytes or a size such as \"80MB\", not #{limit.inspect}")
  end
end
