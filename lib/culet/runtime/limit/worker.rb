# frozen_string_literal: true

require_relative "../../system/processes"
require_relative "../../text/size"

module Culet
  module Limit
    # Restarts workers of servers whose master does not choose one: the worker with the most private memory ends, one
    # worker at a time.
    module Worker
      # A worker with this part of the largest one's memory may end instead, since the largest may not reach a boundary.
      SHARE = 0.9
      private_constant :SHARE
      # The end of a process with jobs, and the maximum time for its running jobs in seconds.
      AFTER_JOBS = "takes no more jobs, and ends when the running ones are done"
      PATIENCE = 600

      class << self
        # Called at the start of a forked worker.
        #
        # @param how [String] the way in which the worker ends, for the log, e.g. "ends after its next request"
        # @yield ends the worker gracefully; without a block, `each_boundary` returns true
        def begin(how, &finish) = Limit.restarts_by(interval: 0) { restart(how, &finish) }

        # @param how [String] for the log
        # @param others [Array<Integer>] the processes to compare with
        # @param bytes [#call] takes a process number, returns the memory of the process in bytes
        # @yield ends this process gracefully
        # @return [String, Symbol] as of `restarts_by`
        def restart(how, others: siblings, bytes: method(:private_bytes), &finish)
          return :nothing if Limit.ends?

          own = bytes.call(::Process.pid).to_i
          return :nothing if others.any? { |pid| bytes.call(pid).to_i * SHARE > own }
          return :nothing unless Limit.claim_restart(Limit.restart_interval)

          finish("worker #{::Process.pid} with #{Text::Size.human(own)} of private memory #{how}", &finish)
        end

        # Ends the process once, however often it is called: the end may take a while.
        #
        # @param detail [String] for the log
        # @yield ends this process gracefully
        # @return [String, Symbol] as of `restarts_by`
        def finish(detail)
          return :nothing if Limit.ends?

          Limit.end_at_boundary
          yield if block_given?
          detail
        end

        # @return [Array<Integer>] the children of this process's parent, including this process
        def siblings = children_of(::Process.ppid)

        # @param parent [Integer]
        # @return [Array<Integer>]
        def children_of(parent) = Processes::Tree.new(parent).children(parent).to_a

        # @param pid [Integer]
        # @return [Integer] bytes, 0 if the process has ended
        def private_bytes(pid) = Processes::Memory.rollup(pid).fetch("private_bytes", 0)
      end
    end
  end
end
