# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "steps"

module Culet
  module Limit
    module Steps
      # Halves the thread pool of a server, so that fewer requests hold memory at the same time. Below the alarm level
      # the changes are undone one after the other.
      class Threads < Step
        # The minimum share of the limit, above the alarm level at which the other steps begin.
        LEVEL = 0.9
        # Seconds between two changes: running requests must end before the effect of the first change shows.
        SETTLE = 2.0
        RESTORE = 30.0

        # @param pool [#min_threads, #max_threads, #resize] sizes, and `resize(min, max)`
        # @param log [#call] writes a line when the pool grows again
        def initialize(pool, log)
          super("threads")
          @pool = pool
          @log = log
          @sizes = [] # [min, max] before each change, the first change first
          @changed = -Float::INFINITY
        end

        # @param used_share [Float]
        def due?(used_share)
          @below_since = nil
          used_share >= LEVEL && @pool.max_threads > 1 && Clock.now - @changed >= SETTLE
        end

        # @return [Boolean] whether the pool is smaller than at the start
        def pending? = @sizes.any?

        def frees? = false

        # @return [String]
        def call
          forget_other_changes
          @sizes << [@pool.min_threads, @pool.max_threads]
          resize([@pool.min_threads, @pool.max_threads / 2].min, @pool.max_threads / 2)
          "#{@sizes.last.last} to #{@pool.max_threads}"
        end

        # @return [void]
        def relieved
          return unless pending?

          @below_since ||= Clock.now
          return if Clock.now - [@below_since, @changed].max < RESTORE

          forget_other_changes
          before = @pool.max_threads
          resize(*@sizes.pop) if pending?
          @log.call("culet: #{@pool.max_threads} threads again, after #{before}") if @pool.max_threads > before
        end

        private

        def resize(min, max)
          @pool.resize(min, max)
          @set = @pool.max_threads
          @changed = Clock.now
        end

        # If the program itself has resized its pool, that size stays.
        def forget_other_changes
          @sizes.clear if @set && @pool.max_threads != @set
        end
      end
    end
  end
end
