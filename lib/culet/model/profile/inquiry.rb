# frozen_string_literal: true

require_relative "../../system/agent/conversation"
require_relative "recording"

module Culet
  module Profile
    # Asks the agent of a process about its profile.
    class Inquiry
      # Time limits of an answer, and of the wait for its start.
      LIMIT_SECONDS = 30.0
      WAIT_SECONDS = 10.0
      private_constant :LIMIT_SECONDS

      # @return [String, nil] the last answer to `running?`
      attr_reader :status

      # @param pid [Integer, String] a process number
      # @param wait_seconds [Float] longest wait for the process to answer
      # @param absence [#call, nil] returns the error message without an agent
      # @param verb [String] the verb of the command line, for error messages
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, wait_seconds: WAIT_SECONDS, absence: nil, verb: "profile")
        @wait = wait_seconds
        @conversation = Agent::Conversation.new(pid, verb: verb, absence: absence, most_bytes: STREAM_BYTES)
      end

      # @param action [String] as in ext/culet/agent/request.h
      # @param sample_bytes [Integer, nil] of "start"; nil: the default of the process
      # @return [String] the answer
      # @raise [Culet::Error] without an agent, or when it does not answer
      def request(action, sample_bytes = nil)
        question = "profile action=#{action} sample_bytes=#{sample_bytes || 0}"
        @conversation.ask(question, limit_seconds: LIMIT_SECONDS, wait_seconds: @wait)
      end

      # @return [Boolean] whether the process samples
      # @raise [Culet::Error]
      def running?
        @status = request("status")
        @status.match?(/\brunning=1\b/)
      end

      # @return [String] the stream of the profile
      # @raise [Culet::Error]
      def read = request("write")
    end
  end
end
