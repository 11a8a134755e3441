# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # The moment between two requests or jobs, in which a pause delays no work. The program calls `pass` at this moment;
    # the monitor calls `run` to have a block run there.
    class Boundary
      def initialize
        @lock = Mutex.new
        @done = ConditionVariable.new
        @work = nil
        @taken = false
        @passed = false
      end

      # Runs the blocks that wait. Without any, the call reads one instance variable.
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

      # Runs a block at the next boundary, and waits for its end.
      #
      # @param seconds [Float] maximum time until the boundary
      # @return [Boolean] whether the block ran; false at once in a program without boundaries
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
