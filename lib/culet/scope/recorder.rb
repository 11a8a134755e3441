# frozen_string_literal: true

require_relative "../errors"
require_relative "../system/processes"
require_relative "reader"
require_relative "series"

module Culet
  module Scope
    # Takes snapshots of one process at regular times, until the time is over, the process has ended, or it is asked to
    # stop.
    class Recorder
      # @return [String, nil] why it stopped early, in words
      attr_reader :early

      # @param every_seconds [Float, nil] from one to the next; nil: only one
      # @param for_seconds [Float, nil] how long; nil: until it is stopped
      # @param interruption [Interruption] asks it to stop
      def initialize(reader, interruption:, every_seconds: nil, for_seconds: nil)
        @reader = reader
        @every = every_seconds
        @for = for_seconds
        @interruption = interruption
        @ticks = Processes::Cpu.start_ticks(reader.pid)
      end

      # @param series [Series] where they go
      # @return [Integer] how many there are
      # @raise [Culet::Error] when the first cannot be taken, or one cannot be written
      def call(series)
        @interruption.at_intervals(@every, @for) { take(series) }
        series.count
      end

      private

      # @return [Boolean] whether to go on
      def take(series)
        return stop_early("it was interrupted") if @interruption.requested?
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
        return stop_early("it was interrupted") if @interruption.requested?
        raise if series.count.zero?

        stop_early(e.message)
      end

      def stop_early(reason)
        @early = reason
        false
      end
    end
  end
end
