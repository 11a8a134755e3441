# frozen_string_literal: true

require_relative "../../system/agent/conversation"
require_relative "../../text/numbers"
require_relative "../../system/processes"
require_relative "../../runtime/strings/slices"
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

    # The Strings of a running process with the agent.
    class Live
      # Pause between two slices.
      REST_SECONDS = Slices::SECONDS
      private_constant :REST_SECONDS

      # @return [Slices, nil] nil before the reading
      attr_reader :slices

      # @param pid [Integer, String] a process number
      # @param content [Boolean] whether contents leave the process; otherwise digests
      # @param collect [Boolean] whether to collect garbage first
      # @param wait_seconds [Float] longest wait for the main thread to start a slice
      # @raise [Culet::Error] without such a process
      def initialize(pid, content: true, collect: true, wait_seconds: 10.0)
        @process = Processes::Live.find(pid)
        @conversation = Agent::Conversation.new(pid, verb: "strings")
        @content = content
        @collect = collect
        @wait_seconds = wait_seconds
      end

      # @return [Integer] the process's number
      def pid = @conversation.pid

      # @param record_file [#write] receives the records
      # @return [Live] itself
      # @raise [Culet::Error] without an agent or without its answer; the message gives the reason
      def read(record_file)
        @slices = Slices.new(collect: @collect, bounds: Bounds.new(@process)) { |from, collect| request(from, collect) }
        @slices.read(record_file) { sleep(REST_SECONDS) }
        self
      end

      # @return [String] name of the source
      def name = "process #{pid}"

      # @return [Hash{String => Object}] nil before the reading
      def reading = @slices.reading

      # @return [String] the reading as a sentence
      def note = Live.note(reading)

      # @param reading [Hash{String => Object}] as of Slices
      # @return [String]
      def self.note(reading)
        seconds = reading.values_at("pause_seconds", "longest_pause_seconds", "collection_seconds")
        pause, longest, collection = seconds.map { |one| format("%.1f ms", 1000 * one) }
        "the process was stopped for #{pause} in #{Text::Numbers.count(reading["slices"], "slice")} " \
          "(longest #{longest}), after a garbage collection of #{collection}"
      end

      # @return [Integer] Strings read
      def strings = @slices.strings

      # @return [Array<String>] always empty: every problem is an error
      def problems = []

      private

      def request(from, collect)
        question = "strings from=#{from} collect=#{collect ? 1 : 0} content=#{@content ? 1 : 0}"
        @conversation.ask(question, limit_seconds: Slices::SECONDS, wait_seconds: @wait_seconds)
      end
    end
  end
end
