# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "steps"

module Culet
  module Limit
    module Steps
      # Serves fewer requests at a time: halves a thread pool that can be resized while it runs, and undoes that, one
      # change after the other, while the usage is below the alarm level. Requests in progress hold less memory then,
      # and no process has to end.
      class Threads < Step
        # The share of the limit from which on threads are taken away; the other steps had their turn before.
        LEVEL = 0.9
        # Seconds between two changes: the first requests must end before the next is decided.
        SETTLE = 2.0
        RESTORE = 30.0

        # @param pool [#min_threads, #max_threads, #resize] sizes, and `resize(min, max)`
        # @param log [#call] gets a line when threads are given back
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

        # @return [Boolean] whether threads are to be given back
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

        # The program may resize its pool too; then that size counts.
        def forget_other_changes
          @sizes.clear if @set && @pool.max_threads != @set
        end
      end
    end
  end
end
