# frozen_string_literal: true

require_relative "observation"

module Culet
  class Diagnosis
    # Figures of processes from before a watch, by their black boxes and a recording of `culet live`. Process number and
    # start time identify a process. Times are seconds since 1970.
    class History
      # Minimum length of a history that overrides the watch, as a multiple of the watch.
      LONG = 2
      private_constant :LONG

      # A request or job. to: nil while it runs.
      Event = Struct.new(:label, :from, :to) do
        # @param at [Float]
        # @return [Boolean] whether the request or job ran at this time
        def at?(at) = from <= at && (to.nil? || at <= to)
      end

      def initialize
        @points = {}
        @events = {}
      end

      # @param process [ObservedProcess]
      # @param box [#readings, #events] as of Autopsy::Box
      # @return [void]
      def add_box(process, box)
        box.readings.each { |reading| add(key(process), reading.at.to_f, reading.levels) }
        @events[key(process)] = box.events.map { |one| Event.new(one.label, one.started_at.to_f, one.ended_at&.to_f) }
      end

      # @param moment [Hash] as of Live::Sampler, its processes by whatever key
      # @return [void]
      def add_moment(moment)
        moment["processes"].each_value do |one|
          add(one.values_at("pid", "start_ticks"), moment["at"], one.dig("figures", "levels"))
        end
      end

      # @param process [ObservedProcess]
      # @param seconds [Float] of the watch
      # @return [Trend, nil] of the memory in use; nil: no more is known than the watch tells
      def trend(process, seconds)
        found = Trend.new(@points.fetch(key(process), []).sort)
        found if found.seconds >= LONG * seconds
      end

      # @param process [ObservedProcess]
      # @return [Array<Event>]
      def events(process) = @events.fetch(key(process), [])

      private

      def key(process) = [process.pid, process.start_ticks]

      def add(key, at, levels)
        ObservedProcess.counted(levels)&.then { |bytes| (@points[key] ||= []) << [at, bytes] }
      end
    end
  end
end
