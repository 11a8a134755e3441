# frozen_string_literal: true

require_relative "../../system/agent/conversation"
require_relative "../../text/numbers"
require_relative "../../system/processes"
require_relative "bounds"
require_relative "../../runtime/strings/slices"

module Culet
  module Strings
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
