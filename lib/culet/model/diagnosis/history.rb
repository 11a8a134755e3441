# frozen_string_literal: true

require_relative "observation"

module Culet
  class Diagnosis
    # What is known of processes from before a watch, by their black boxes and a recording of `culet live`. Times are
    # seconds since 1970.
    class History
      # A history tells more than the watch if it is so many times as long.
      LONG = 2
      private_constant :LONG

      # A request or job. to: nil if it goes on.
      Event = Struct.new(:label, :from, :to) do
        # @param at [Float]
        # @return [Boolean] whether it was running then
        def at?(at) = from <= at && (to.nil? || at <= to)
      end

      def initialize
        @points = {}
        @events = {}
      end

      # @param pid [Integer]
      # @param box [#readings, #events] as of Autopsy::Box
      # @return [void]
      def add_box(pid, box)
        box.readings.each { |reading| add(pid, reading.at.to_f, reading.levels) }
        @events[pid] = box.events.map { |one| Event.new(one.label, one.started_at.to_f, one.ended_at&.to_f) }
      end

      # @param moment [Hash] as of Live::Sampler, its processes by whatever key
      # @param pids [Hash{Integer => Integer}] number of a process that is watched => when it started, in ticks
      # @return [void]
      def add_moment(moment, pids)
        moment["processes"].each_value do |one|
          started = pids[one["pid"]]
          add(one["pid"], moment["at"], one.dig("figures", "levels")) if started && started == one["start_ticks"]
        end
      end

      # @param pid [Integer]
      # @param seconds [Float] of the watch
      # @return [Trend, nil] of the memory in use; nil: no more is known than the watch tells
      def trend(pid, seconds)
        found = Trend.new(@points.fetch(pid, []).sort)
        found if found.seconds >= LONG * seconds
      end

      # @param pid [Integer]
      # @return [Array<Event>]
      def events(pid) = @events.fetch(pid, [])

      private

      def add(pid, at, levels)
        values = levels.to_h.values_at(*IN_USE).compact
        (@points[pid] ||= []) << [at, values.sum] if values.size > 1
      end
    end
  end
end
