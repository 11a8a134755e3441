# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/shape"

module Culet
  module Strings
    # What the Slices of another process can be: of the right shape, each going on from the last, together no more than the
    # process has room for.
    class Bounds
      # What the first line of each says. strings: as many as there are records.
      HEAD = { "kind" => "strings", "next" => Shape.nullable(Shape::COUNT), "seconds" => Shape::SECONDS, "collection_seconds" => Shape::SECONDS,
               "strings" => Shape::COUNT, "sites" => Shape::BOOLEAN, "why" => Shape::TEXT }.freeze
      # Of a record without content (ext/culet/strings/record.h).
      RECORD_BYTES = 72
      # A record has up to so many bytes for each that the string holds: without content, a link of four for each byte of its
      # text, and a head of 72 beside a slot of 40.
      RECORD_PARTS = 6
      # For those of small processes.
      LEAST_BYTES = 64 << 20
      # At a slice of 20 ms and a rest of 20 ms, eleven hours.
      MOST_SLICES = 1_000_000
      private_constant :HEAD, :RECORD_BYTES, :RECORD_PARTS, :LEAST_BYTES, :MOST_SLICES

      # @param process [Processes::Live] the one that tells
      def initialize(process)
        @process = process
        @bytes = @slices = 0
      end

      # @param fields [Object] of a slice's first line
      # @param records [String]
      # @param from [Integer] the slot it was to begin with
      # @raise [Culet::Error] when it cannot be
      def check(fields, records, from)
        Shape.check(fields, HEAD, name: "what the agent told")
        goes_on = fields["next"].nil? || (fields["next"] > from && fields["strings"].positive?)
        raise Error, "what the agent told is damaged: it contradicts itself" unless goes_on && fields["strings"] * RECORD_BYTES <= records.bytesize
        raise Error, "its strings came to no end after #{MOST_SLICES} slices" if (@slices += 1) > MOST_SLICES

        @bytes += records.bytesize
        raise Error, "it told more of its strings than there is room for in its memory; it is not to be trusted, or many of them share large buffers" if @bytes > most_bytes
      end

      private

      # What the kernel says that it has.
      def most_bytes
        fields = @process.status_fields
        LEAST_BYTES + (RECORD_PARTS * 1024 * %w[VmRSS VmSwap].sum { |name| fields[name].to_i })
      end
    end
  end
end
