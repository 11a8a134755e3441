# frozen_string_literal: true

require_relative "../../system/agent/conversation"
require_relative "../../system/ruby_options"
require_relative "unused"

module Culet
  module Requires
    # Requests unused code from the agent of a process with coverage (culet/unused).
    class UnusedInquiry
      # Time limits of the answer, and of the wait for its start.
      LIMIT_SECONDS = 120.0
      PATIENCE_SECONDS = 60.0
      private_constant :LIMIT_SECONDS, :PATIENCE_SECONDS

      # @param word [String] a process number
      # @raise [Culet::Error] without such a process
      def initialize(word, patience: PATIENCE_SECONDS)
        absence = "process #{word} does not record which code runs; " \
                  "start it with `culet require --unused -- COMMAND`, or with " \
                  "#{RubyOptions.advice("unused")} in its environment"
        @conversation = Agent::Conversation.new(word, verb: "require --unused", absence: -> { absence })
        @patience = patience
      end

      # @return [Hash] the answer, for Unused
      # @raise [Culet::Error] without an answer; the message gives reason and remedy
      def call
        text = @conversation.ask("unused", limit_seconds: LIMIT_SECONDS, wait_seconds: @patience)
        Unused.parse(text, name: "the answer of process #{@conversation.pid}")
      end
    end
  end
end
