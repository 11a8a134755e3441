# frozen_string_literal: true

require_relative "../errors"
require_relative "../system/clock"
require_relative "../system/processes"
require_relative "reader"
require_relative "series"

module Culet
  module Scope
    # Takes snapshots of one process at regular times, until the time is over, the process has ended, or it is asked to
    # stop.
    class Recorder
      # A wish to stop is looked for this often, in seconds.
      STEP_SECONDS = 0.1
      private_constant :STEP_SECONDS

      # @return [String, nil] why it stopped early, in words
      attr_reader :early

      # @param every_seconds [Float, nil] from one to the next; nil: only one
      # @param for_seconds [Float, nil] how long; nil: until it is stopped
      # @param stop [Proc] tells whether to stop
      def initialize(reader, every_seconds: nil, for_seconds: nil, stop: -> { false })
        @reader = reader
        @every = every_seconds
        @for = for_seconds
        @stop = stop
        @ticks = Processes::Cpu.start_ticks(reader.pid)
      end

      # @param series [Series] where they go
      # @return [Integer] how many there are
      # @raise [Culet::Error] when the first cannot be taken, or one cannot be written
      def call(series)
        start = Clock.now
        index = 0
        while take(series)
          index += 1
          break if @every.nil? || (@for && index * @every > @for)

          wait_until(start + (index * @every))
        end
        series.count
      end

      private

      # @return [Boolean] whether to go on
      def take(series)
        return stop_early("it was interrupted") if @stop.call
        unless Processes::Cpu.start_ticks(@reader.pid) == @ticks || series.count.zero?
          return stop_early("process #{@reader.pid} has ended")
        end

        stream = read(series) or return false
        series.add(stream)
        true
      end

      def read(series)
        @reader.stream
      rescue Error => e
        # Ctrl-C reaches the program that reads as well.
        return stop_early("it was interrupted") if @stop.call
        raise if series.count.zero?

        stop_early(e.message)
      end

      def stop_early(reason)
        @early = reason
        false
      end

      def wait_until(time)
        while !@stop.call && (rest = time - Clock.now).positive?
          sleep([rest, STEP_SECONDS].min)
        end
      end
    end
  end
end
