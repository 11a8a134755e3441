# frozen_string_literal: true

require "json"
require_relative "../../errors"
require_relative "../../system/foreign_json"

module Culet
  module Strings
    # The Strings of a process with the agent, in slices: the process is paused for each slice and runs between them.
    # Strings allocated, freed or moved meanwhile may be missed.
    class Slices
      # Length of a slice in seconds; the string at its end is completed.
      SECONDS = 0.02

      # @return [Integer] Strings read
      attr_reader :strings

      # @return [Float] seconds of pauses, all slices together
      attr_reader :seconds

      # @return [Float] seconds of the longest slice
      attr_reader :longest_seconds

      # @return [Float] seconds of the garbage collection before the first
      attr_reader :collection_seconds

      # @return [Integer] number of slices
      attr_reader :count

      # @param collect [Boolean] whether to collect garbage first; otherwise unreachable strings are included
      # @param bounds [Bounds, nil] checks on the answers of another process; nil: this process answers
      # @yieldparam from [Integer] a slot's address
      # @yieldparam collect [Boolean]
      # @yieldreturn [String] a slice
      def initialize(collect:, bounds: nil, &request)
        @collect = collect
        @bounds = bounds
        @request = request
        @strings = @count = 0
        @seconds = @longest_seconds = @collection_seconds = 0.0
      end

      # @param out [#write] gets the records
      # @yield after each slice but the last
      # @return [Slices] itself
      # @raise [Culet::Error] when the process does not answer
      def read(out)
        from = 0
        loop do
          head, records = @request.call(from, @collect && @count.zero?).split("\n", 2)
          fields = parse(head.to_s)
          @bounds&.check(fields, records.to_s, from)
          raise Error, "its strings cannot be read: #{fields["why"]}" unless fields["why"].empty?

          out.write(records)
          note(fields)
          from = fields["next"] or return self
          yield if block_given?
        end
      end

      # @return [Hash{String => Object}] slices and pauses, for JSON
      def reading
        { "slices" => count, "pause_seconds" => seconds, "longest_pause_seconds" => longest_seconds,
          "collection_seconds" => collection_seconds }
      end

      private

      def parse(head)
        ForeignJson.parse(head)
      rescue JSON::ParserError
        raise Error, "the agent sent an invalid answer"
      end

      def note(fields)
        @count += 1
        @strings += fields["strings"]
        @seconds += fields["seconds"]
        @longest_seconds = [@longest_seconds, fields["seconds"]].max
        @collection_seconds += fields["collection_seconds"]
      end
    end
  end
end
