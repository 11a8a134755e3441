# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/agent/conversation"
require_relative "../../system/foreign_json"
require_relative "../../system/processes"
require_relative "../../system/shape"

module Culet
  module Strings
    # The reachable Strings of a running process with the agent, as a forked copy of it writes them.
    class Live
      # The end of an answer: JSON, padded with blanks (ext/culet/agent/strings.h).
      END_BYTES = 256
      SHAPE = { "kind" => "strings", "strings" => Shape::COUNT, "fork_seconds" => Shape::SECONDS }.freeze
      # A record without content (ext/culet/strings/record.h).
      RECORD_BYTES = 72
      # Upper bound of record bytes per byte that a string holds: four for each byte of text without content, and a head
      # of 72 for a slot of 40.
      RECORD_PARTS = 6
      # For small processes.
      LEAST_BYTES = 64 << 20
      # CPU time of the copy, in seconds.
      LIMIT_SECONDS = 120.0
      private_constant :END_BYTES, :SHAPE, :RECORD_BYTES, :RECORD_PARTS, :LEAST_BYTES, :LIMIT_SECONDS

      # @param pid [Integer, String] a process number
      # @param content [Boolean] whether contents leave the process; otherwise digests
      # @param wait_seconds [Float] longest wait for the main thread of the process
      # @raise [Culet::Error] without such a process
      def initialize(pid, content: true, wait_seconds: 10.0)
        @process = Processes::Live.find(pid)
        @content = content
        @wait_seconds = wait_seconds
      end

      # @return [Integer] the process's number
      def pid = @process.pid

      # @param record_file [RecordFile] receives the records
      # @return [Live] itself
      # @raise [Culet::Error] without an agent or without its answer; the message gives the reason
      def read(record_file)
        bound = most_bytes
        conversation = Agent::Conversation.new(pid, verb: "strings", most_bytes: bound)
        conversation.ask_copy("strings content=#{@content ? 1 : 0} most_bytes=#{bound}", limit_seconds: LIMIT_SECONDS,
                                                                                        wait_seconds: @wait_seconds,
                                                                                        into: record_file.io)
        @answer = parse(record_file.cut(END_BYTES), record_file.io.size, conversation)
        self
      end

      # @return [String] name of the source
      def name = "process #{pid}"

      # @return [Hash{String => Object}] how long the process was stopped; after the reading
      def reading = { "pause_seconds" => @answer["fork_seconds"] }

      # @return [String] the reading as a sentence
      def note
        format("the process was stopped for %.1f ms, while a copy of it was forked", 1000 * @answer["fork_seconds"])
      end

      # @return [Array<String>] always empty: every problem is an error
      def problems = []

      private

      def parse(text, bytes, conversation)
        fields = Shape.check(ForeignJson.parse(text), SHAPE, name: "the answer of the agent")
        return fields if fields["strings"] * RECORD_BYTES <= bytes

        raise Error, "the answer of the agent is inconsistent"
      rescue JSON::ParserError
        raise Error, conversation.strange
      end

      # From the kernel's figures of the process.
      def most_bytes
        fields = @process.status_fields
        LEAST_BYTES + (RECORD_PARTS * 1024 * %w[VmRSS VmSwap].sum { |name| fields[name].to_i })
      end
    end
  end
end
