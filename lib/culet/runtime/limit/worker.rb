# frozen_string_literal: true

require_relative "../../system/processes"
require_relative "../../text/size"

module Culet
  module Limit
    # Restarts of workers that decide for themselves: the one with the most private memory ends, one at a time.
    module Worker
      # A worker whose memory is this part of the largest may end: the largest may have no boundary for a long time.
      SHARE = 0.9
      private_constant :SHARE
      # How a process with jobs ends, and how long these have, in seconds.
      AFTER_JOBS = "takes no more jobs, and ends when those it has are done"
      PATIENCE = 600

      class << self
        # In a worker that was forked, when it begins.
        #
        # @param how [String] when it ends, for the log, e.g. "ends after its next request"
        # @yield ends it gracefully; without a block, `each_boundary` returns true
        def begin(how, &finish) = Limit.restarts_by(interval: 0) { restart(how, &finish) }

        # @param others [Array<Integer>] the processes that this one is compared with
        # @param bytes [#call] given a process number, its memory
        # @yield ends this process gracefully
        # @return [String, Symbol] as of `restarts_by`
        def restart(how, others: siblings, bytes: method(:private_bytes), &finish)
          return :nothing if Limit.ends?

          own = bytes.call(::Process.pid).to_i
          return :nothing if others.any? { |pid| bytes.call(pid).to_i * SHARE > own }
          return :nothing unless Limit.claim_restart(Limit.restart_interval)

          finish("worker #{::Process.pid} with #{Text::Size.human(own)} of private memory #{how}", &finish)
        end

        # Once: a process that ends may take a while.
        #
        # @yield ends this process gracefully
        # @return [String, Symbol] as of `restarts_by`
        def finish(detail)
          return :nothing if Limit.ends?

          Limit.end_at_boundary
          yield if block_given?
          detail
        end

        # @return [Array<Integer>] the processes of the same parent, this one among them
        def siblings = children_of(::Process.ppid)

        # @param parent [Integer]
        # @return [Array<Integer>]
        def children_of(parent) = Processes::Tree.new(parent).children(parent).to_a

        # @param pid [Integer]
        # @return [Integer]
        def private_bytes(pid) = Processes::Memory.rollup(pid).fetch("private_bytes", 0)
      end
    end
  end
end
