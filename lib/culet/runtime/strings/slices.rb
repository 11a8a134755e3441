# frozen_string_literal: true

require "json"
require_relative "../../errors"

module Culet
  module Strings
    # The Strings of a process that carries the agent, in slices (ext/culet/agent/strings.h): the process stands still for
    # one at a time, and runs on between them. What is born, freed or moved meanwhile may be missed.
    class Slices
      # How long one may take, in seconds; a string is finished.
      SECONDS = 0.02

      # @return [Integer] Strings told
      attr_reader :strings

      # @return [Float] seconds that the process stood still, all slices together
      attr_reader :seconds

      # @return [Float] the longest of them
      attr_reader :longest_seconds

      # @return [Float] seconds of the garbage collection before the first
      attr_reader :collection_seconds

      # @return [Integer] how many there were
      attr_reader :count

      # @param collect [Boolean] whether garbage is collected first; what is dead is told too, otherwise, until it is swept
      # @param bounds [Bounds, nil] nil: it is this process that tells
      # @yieldparam from [Integer] a slot's address
      # @yieldparam collect [Boolean]
      # @yieldreturn [String] a slice
      def initialize(collect:, bounds: nil, &ask)
        @collect = collect
        @bounds = bounds
        @ask = ask
        @strings = @count = 0
        @seconds = @longest_seconds = @collection_seconds = 0.0
      end

      # @param out [#write] gets the records
      # @yield after each slice but the last
      # @return [Slices] itself
      # @raise [Culet::Error] when the process does not tell its strings
      def read(out)
        from = 0
        loop do
          head, records = @ask.call(from, @collect && @count.zero?).split("\n", 2)
          fields = parse(head.to_s)
          @bounds&.check(fields, records.to_s, from)
          raise Error, "its strings cannot be told: #{fields["why"]}" unless fields["why"].empty?

          out.write(records)
          note(fields)
          from = fields["next"] or return self
          yield if block_given?
        end
      end

      # @return [Hash{String => Object}] how the reading went, for JSON
      def reading
        { "slices" => count, "pause_seconds" => seconds, "longest_pause_seconds" => longest_seconds, "collection_seconds" => collection_seconds }
      end

      private

      def parse(head)
        JSON.parse(head.dup.force_encoding(Encoding::UTF_8).scrub)
      rescue JSON::ParserError
        raise Error, "the agent told something that is not its to tell"
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
