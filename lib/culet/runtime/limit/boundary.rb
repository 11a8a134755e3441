# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # The place between two requests or jobs, where a pause disturbs least. The program calls `pass` there; the monitor
    # has work done there.
    class Boundary
      def initialize
        @lock = Mutex.new
        @done = ConditionVariable.new
        @work = nil
        @taken = false
        @passed = false
      end

      # Called by the program between two units of work. Costs a read of an instance variable while nothing waits.
      def pass
        @passed = true
        return unless @work

        work = @lock.synchronize { @work.tap { @taken = true if @work } } or return
        begin
          work.call
        ensure
          @lock.synchronize do
            @work = nil
            @done.broadcast
          end
        end
      end

      # Has work done at the next boundary.
      #
      # @param seconds [Float] how long to wait for the boundary
      # @return [Boolean] whether it was done; false at once in a program that has no boundaries
      def run(seconds, &work)
        return false unless @passed

        deadline = Clock.now + seconds
        @lock.synchronize do
          @taken = false
          @work = work
          while @work
            rest = deadline - Clock.now
            break if rest <= 0 && !@taken

            @done.wait(@lock, @taken ? nil : rest)
          end
          @work = nil
          @taken
        end
      end
    end
  end
end
