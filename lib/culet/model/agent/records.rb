# frozen_string_literal: true

require "json"
require "zlib"
require_relative "../../errors"
require_relative "../../scope/varints"
require_relative "../../system/foreign_json"

module Culet
  module Agent
    # The records that a process reports about itself; they are inserted into the stream that culet-scope wrote.
    class Records
      # The kinds of record that a process may report; all others come from culet-scope.
      KINDS = %w[gc vm allocator_statistics objects classes].freeze
      # Used at once, not kept in the stream.
      NAMES = "classes"
      # Default time limit of the count, in seconds.
      LIMIT_SECONDS = 10.0
      LAST = "E\x04".b.freeze
      LAST_BYTES = 6
      private_constant :NAMES, :LAST, :LAST_BYTES

      # @return [Records] this process's own
      def self.own = new(Agent.detail(true, LIMIT_SECONDS))

      # @param lines [String] JSON objects, one to a line
      # @raise [Culet::Error] for an unknown kind
      def initialize(lines)
        @records = lines.dup.force_encoding(Encoding::UTF_8).scrub.lines(chomp: true).to_h { |line| [kind(line), line] }
      end

      # @param kind [String] one of KINDS
      # @return [Hash, nil] the object of that kind
      def fact(kind) = @records[kind] && ForeignJson.parse(@records[kind])

      # @param stream [String] the output of culet-scope
      # @return [String] the stream with these records before its last one
      # @raise [Culet::Error] when the stream is incomplete
      def stream(stream)
        stream = stream.b
        unless stream.byteslice(-LAST_BYTES, LAST.bytesize) == LAST
          raise Error, "the output of culet-scope is incomplete"
        end

        body = stream.byteslice(0, stream.bytesize - LAST_BYTES)
        @records.except(NAMES).each_value { |line| body << "J" << Scope::Varints.append("".b, line.bytesize) << line.b }
        body << LAST << [Zlib.crc32(body.byteslice(0, body.bytesize - LAST.bytesize))].pack("V")
      end

      private

      def kind(line)
        fields = ForeignJson.parse(line)
        name = fields["kind"] if fields.is_a?(Hash)
        raise Error, "the agent sent an invalid answer" unless KINDS.include?(name)

        name
      rescue JSON::ParserError
        raise Error, "the agent sent an answer that is not JSON"
      end
    end
  end
end
