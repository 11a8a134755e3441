# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/shape"

module Culet
  module Live
    # JSON merge patches (RFC 7396): the members that differ, and null for those that are gone. A document therefore has
    # no null; a figure that is not known is left out.
    module MergePatch
      module_function

      # @param value [Object] as JSON has it
      # @return [Object] the same without members that are nil; elements of lists stay
      def compact(value) = value.is_a?(Hash) ? value.compact.transform_values { |one| compact(one) } : value

      # @param before [Hash] without nil
      # @param after [Hash] without nil
      # @return [Hash] the patch that makes `after` of `before`; empty if they are equal
      def diff(before, after)
        patch = {}
        kept = 0
        after.each do |key, value|
          old = before[key]
          kept += 1 unless old.nil?
          next if old == value

          patch[key] = old.is_a?(Hash) && value.is_a?(Hash) ? diff(old, value) : value
        end
        before.each_key { |key| patch[key] = nil unless after.key?(key) } if kept < before.size
        patch
      end

      # @param document [Object]
      # @param patch [Object]
      # @return [Object] a new document; parts that the patch does not name are those of the old one
      def apply(document, patch)
        return patch unless patch.is_a?(Hash)

        patch.each_with_object(document.is_a?(Hash) ? document.dup : {}) do |(key, value), merged|
          value.nil? ? merged.delete(key) : merged[key] = apply(merged[key], value)
        end
      end
    end

    # A moment of the sampler as a document of which only changes are sent: processes by key instead of a list, and no
    # member that is null. Events belong to one moment, and stand beside the state.
    module State
      # The states of successive moments. A process that is the same object as before is the same object in the state.
      class Series
        def initialize
          @known = {}.compare_by_identity
        end

        # @param moment [Hash] of Live::Sampler
        # @return [Hash] the state
        def call(moment)
          @known = moment.fetch("processes").each_with_object({}.compare_by_identity) do |process, all|
            all[process] = @known[process] || entry(process)
          end
          entries = @known.each_value.to_h
          MergePatch.compact(moment.except("processes", "events"))
                    .merge("order" => entries.keys, "processes" => entries)
        end

        private

        def entry(process) = [State.key(process), MergePatch.compact(process)]
      end

      # A title and a time are all that each process has.
      OPTIONAL = Shape.optional(Shape::COUNT)
      SIGNED = Shape.optional(Shape::INTEGER)
      NUMBER = Shape.optional(Shape::NUMBER)
      FIGURES = {
        "levels" => Shape.optional(Shape.map(Shape::TEXT, Shape::INTEGER)),
        "malloc_used_bytes" => OPTIONAL, "malloc_free_bytes" => OPTIONAL, "live_slots" => OPTIONAL,
        "free_slots" => OPTIONAL, "minor_gcs" => OPTIONAL, "major_gcs" => OPTIONAL, "gc_per_minute" => NUMBER,
        "allocated_objects" => OPTIONAL, "trims" => OPTIONAL, "trim_returned_bytes" => OPTIONAL,
        "profile" => Shape.optional(Shape::BOOLEAN)
      }.freeze
      MEMORY = { "rss_bytes" => OPTIONAL, "pss_bytes" => OPTIONAL, "private_bytes" => OPTIONAL,
                 "shared_bytes" => OPTIONAL, "swap_bytes" => OPTIONAL, "growth_bytes" => SIGNED }.freeze
      PROCESS = { "pid" => Shape::COUNT, "title" => Shape::TEXT, "parent_pid" => OPTIONAL, "start_ticks" => OPTIONAL,
                  "started_at" => NUMBER, "ruby" => Shape.optional(Shape::BOOLEAN), **MEMORY, "cpu_seconds" => NUMBER,
                  "threads" => OPTIONAL, "figures" => Shape.optional(FIGURES) }.freeze
      LIMIT = { "limit_bytes" => OPTIONAL, "used_bytes" => OPTIONAL, "headroom_bytes" => SIGNED,
                "source" => Shape.optional(Shape::TEXT) }.freeze
      EVENT = { "at" => Shape::SECONDS, "pid" => Shape.optional(Shape.nullable(Shape::COUNT)), "kind" => Shape::TEXT,
                "text" => Shape::TEXT, "bytes" => Shape.optional(Shape.nullable(Shape::INTEGER)) }.freeze
      STATE = { "at" => Shape::SECONDS, "seconds" => NUMBER, "order" => [Shape::TEXT],
                "processes" => Shape.map(Shape::TEXT, PROCESS), "total" => Shape.optional(MEMORY),
                "limit" => Shape.optional(LIMIT) }.freeze
      # The last second that a date of the page can show as four digits of a year.
      LAST_SECOND = 253_402_300_799
      # More than any machine runs of one program.
      MOST_PROCESSES = 4096
      private_constant :OPTIONAL, :SIGNED, :NUMBER, :FIGURES, :MEMORY, :PROCESS, :LIMIT, :EVENT, :STATE, :LAST_SECOND,
                       :MOST_PROCESSES

      module_function

      # @param moment [Hash] of Live::Sampler
      # @return [Hash] the state
      def of(moment) = Series.new.call(moment)

      # @param process [Hash]
      # @return [String] what tells a process from a later one of the same number
      def key(process) = "#{process.fetch("pid")}-#{process["start_ticks"]}"

      # @param state [Hash] from a file
      # @param events [Array]
      # @param name [String] the origin, for the sentence
      # @param before [Hash, nil] a checked state: the same objects are not checked again, so that a small patch of a
      #   large state is a small step
      # @return [Hash] the state
      # @raise [Culet::Error] when it has another shape
      def check(state, events, name:, before: nil)
        Shape.check(changed(state, before), STATE, name: name)
        Shape.check(events, [EVENT], name: name)
        late = [state, *events].map { |one| one["at"] }.max > LAST_SECOND
        raise Error, "#{name} is damaged: a time is after the year 9999" if late
        raise Error, "#{name} is damaged: it has too many processes" if state["order"].size > MOST_PROCESSES
        return state if ordered?(state, before)

        raise Error, "#{name} is damaged: the order is not that of its processes"
      end

      def changed(state, before)
        processes = state["processes"]
        return state unless before && processes.is_a?(Hash)

        known = before["processes"]
        state.merge("order" => state["order"].equal?(before["order"]) ? [] : state["order"],
                    "processes" => processes.reject { |key, process| process.equal?(known[key]) })
      end

      def ordered?(state, before)
        keys = state["processes"].keys
        return true if before && state["order"].equal?(before["order"]) && keys == before["processes"].keys

        state["order"].sort == keys.sort
      end

      private_class_method :changed, :ordered?
    end
  end
end
