# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/shape"

module Culet
  module Strings
    # Checks the slices of another process: their shape, their order, and their size against the memory of the process.
    class Bounds
      # The first line of a slice. strings: the number of records.
      HEAD = { "kind" => "strings", "next" => Shape.nullable(Shape::COUNT), "seconds" => Shape::SECONDS,
               "collection_seconds" => Shape::SECONDS, "strings" => Shape::COUNT, "sites" => Shape::BOOLEAN,
               "why" => Shape::TEXT }.freeze
      # A record without content (ext/culet/strings/record.h).
      RECORD_BYTES = 72
      # Upper bound of record bytes per byte that a string holds: four for each byte of text without content, and a head
      # of 72 for a slot of 40.
      RECORD_PARTS = 6
      # For small processes.
      LEAST_BYTES = 64 << 20
      # Eleven hours of slices and pauses of 20 ms each.
      MOST_SLICES = 1_000_000
      private_constant :HEAD, :RECORD_BYTES, :RECORD_PARTS, :LEAST_BYTES, :MOST_SLICES

      # @param process [Processes::Live] the process with the agent
      def initialize(process)
        @process = process
        @bytes = @slices = 0
      end

      # @param fields [Object] the slice's first line
      # @param records [String]
      # @param from [Integer] the requested slot
      # @raise [Culet::Error] for an impossible slice
      def check(fields, records, from)
        Shape.check(fields, HEAD, name: "the answer of the agent")
        continues = fields["next"].nil? || (fields["next"] > from && fields["strings"].positive?)
        unless continues && fields["strings"] * RECORD_BYTES <= records.bytesize
          raise Error, "the answer of the agent is inconsistent"
        end
        raise Error, "the strings did not end after #{MOST_SLICES} slices" if (@slices += 1) > MOST_SLICES

        @bytes += records.bytesize
        return if @bytes <= most_bytes

        raise Error, "the agent sent more strings than fit into the memory of the process; " \
                     "it is not trustworthy, or many strings share large buffers"
      end

      private

      # From the kernel's figures of the process.
      def most_bytes
        fields = @process.status_fields
        LEAST_BYTES + (RECORD_PARTS * 1024 * %w[VmRSS VmSwap].sum { |name| fields[name].to_i })
      end
    end
  end
end
