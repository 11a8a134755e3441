# frozen_string_literal: true

require "json"
require_relative "../errors"
require_relative "../shape"

module Culet
  module Strings
    # The Strings of a process that carries the agent, in slices (ext/culet/agent_strings.h): the process stands still for
    # one at a time, and runs on between them. What is born, freed or moved meanwhile may be missed.
    class Slices
      # How long one may take, in seconds; a string is finished.
      SECONDS = 0.02
      # What the first line of each says. strings: as many as there are records.
      HEAD = { "kind" => "strings", "next" => Shape.nullable(Shape::COUNT), "seconds" => Shape::SECONDS, "collection_seconds" => Shape::SECONDS,
               "strings" => Shape::COUNT, "sites" => Shape::BOOLEAN, "why" => Shape::TEXT }.freeze
      # Of a record without content (ext/culet/strings_record.h).
      RECORD_BYTES = 72
      # At a slice of 20 ms and a rest of 20 ms, eleven hours.
      MOST = 1_000_000
      private_constant :HEAD, :RECORD_BYTES, :MOST

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
      # @param most_bytes [#call] how many bytes of records there can be
      # @yieldparam from [Integer] a slot's address
      # @yieldparam collect [Boolean]
      # @yieldreturn [String] a slice
      def initialize(collect:, most_bytes: -> { Float::INFINITY }, &ask)
        @collect = collect
        @most_bytes = most_bytes
        @ask = ask
        @bytes = 0
        @strings = @count = 0
        @seconds = @longest_seconds = @collection_seconds = 0.0
      end

      # @param out [#write] gets the records
      # @yield after each slice but the last
      # @return [Slices] itself
      # @raise [Culet::Error] when the process does not tell its strings, or more than it can have
      def read(out)
        from = 0
        loop do
          head, records = @ask.call(from, @collect && @count.zero?).split("\n", 2)
          fields = parse(head.to_s)
          check(fields, records.to_s, from)
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
        fields = Shape.check(JSON.parse(head.dup.force_encoding(Encoding::UTF_8).scrub), HEAD, name: "what the agent told")
        raise Error, "its strings cannot be told: #{fields["why"]}" unless fields["why"].to_s.empty?

        fields
      rescue JSON::ParserError
        raise Error, "the agent told something that is not its to tell"
      end

      # Each slice goes on from where the last one ended, and tells a string at least; so there is an end.
      def check(fields, records, from)
        last = fields["next"].nil?
        goes_on = last || (fields["next"] > from && fields["strings"].positive?)
        raise Error, "what the agent told is damaged: it contradicts itself" unless goes_on && fields["strings"] * RECORD_BYTES <= records.bytesize
        raise Error, "its strings came to no end after #{MOST} slices" if @count == MOST

        @bytes += records.bytesize
        raise Error, "it told more of its strings than there is room for in its memory; it is not to be trusted, or many of them share large buffers" if @bytes > @most_bytes.call
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
