# frozen_string_literal: true

require "io/wait"
require_relative "../../system/clock"

module Culet
  module Top
    # Moments at an interval, read in a thread, so that keys are answered meanwhile.
    class Readings
      # A sampler is given so long to finish.
      PATIENCE_SECONDS = 2
      private_constant :PATIENCE_SECONDS

      # @return [IO] readable when there is something to take
      attr_reader :io

      # @param sampler [#call] returns a moment; nil when all processes have ended
      # @param every [Numeric] seconds from one reading to the next
      def initialize(sampler, every:)
        @sampler = sampler
        @every = every
        @results = Queue.new
        @io, @writer = IO.pipe
        @waker, @wake = IO.pipe
        @thread = Thread.new { run }
        @thread.report_on_exception = false
      end

      # @return [Array<Hash, nil>] the moments since the last call; nil behind the last one
      # @raise [StandardError] what the sampler raised
      def take
        @io.read_nonblock(1024, exception: false)
        Array.new(@results.size) { @results.pop }.each { |result| raise result if result.is_a?(Exception) }
      end

      # @return [void]
      def close
        @wake.close
        @thread.kill unless @thread.join(PATIENCE_SECONDS)
        [@io, @writer, @waker].each(&:close)
      end

      private

      def run
        due = Clock.now
        loop do
          moment = @sampler.call
          put(moment)
          break unless moment

          # After a pause, such as a stop by Ctrl-Z, missed readings are not made up for.
          due = [due + @every, Clock.now].max
          break if @waker.wait_readable([due - Clock.now, 0].max)
        end
      rescue StandardError => e
        put(e)
      end

      def put(result)
        @results << result
        @writer.write_nonblock(".", exception: false)
      end
    end
  end
end
