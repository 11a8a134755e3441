# frozen_string_literal: true

require_relative "../agent/conversation"
require_relative "../../text/numbers"
require_relative "../../system/processes"
require_relative "bounds"
require_relative "../../runtime/strings/slices"

module Culet
  module Strings
    # The Strings of a running process that carries the agent.
    class Live
      # Between two slices the process has as long for itself.
      REST_SECONDS = Slices::SECONDS
      private_constant :REST_SECONDS

      # @return [Slices, nil] how the reading went
      attr_reader :slices

      # @param pid [Integer, String] a process number
      # @param content [Boolean] whether the strings' bytes may leave the process; if not, digests of them do
      # @param collect [Boolean] whether it collects garbage first
      # @param wait_seconds [Float] how long its main thread may take until it begins with a slice
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, content: true, collect: true, wait_seconds: 10.0)
        @process = Processes::Live.find(pid)
        @conversation = Agent::Conversation.new(pid, verb: "strings")
        @content = content
        @collect = collect
        @wait_seconds = wait_seconds
      end

      # @return [Integer] the process's number
      def pid = @conversation.pid

      # @param spool [#write] gets the records
      # @return [Live] itself
      # @raise [Culet::Error] when it has no agent, or does not answer; the message says why
      def read(spool)
        @slices = Slices.new(collect: @collect, bounds: Bounds.new(@process)) { |from, collect| ask(from, collect) }
        @slices.read(spool) { sleep(REST_SECONDS) }
        self
      end

      # @return [String] what it is
      def name = "process #{pid}"

      # @return [Hash{String => Object}] how the reading went
      def reading = @slices.reading

      # @return [String] the same in a sentence
      def note = Live.note(reading)

      # @param reading [Hash{String => Object}] as of Slices
      # @return [String]
      def self.note(reading)
        milliseconds = reading.values_at("pause_seconds", "longest_pause_seconds", "collection_seconds").map { |seconds| format("%.1f ms", 1000 * seconds) }
        "Ruby stood still there for #{milliseconds[0]} in #{Text::Numbers.count(reading["slices"], "slice")}, the longest of #{milliseconds[1]}, and before for #{milliseconds[2]} to collect garbage"
      end

      # @return [Integer] Strings read
      def strings = @slices.strings

      # @return [Array<String>] nothing can be amiss that is no error
      def problems = []

      private

      def ask(from, collect)
        question = "strings from=#{from} collect=#{collect ? 1 : 0} content=#{@content ? 1 : 0}"
        @conversation.ask(question, limit_seconds: Slices::SECONDS, wait_seconds: @wait_seconds)
      end
    end
  end
end
