# frozen_string_literal: true

require_relative "../agent/conversation"
require_relative "../../system/ruby_options"
require_relative "unused"

module Culet
  module Requires
    # Asks a process that follows which of its code runs (culet/unused), by way of its agent.
    class UnusedInquiry
      # For the answer, once the process has begun with it, and until it begins.
      LIMIT_SECONDS = 120.0
      PATIENCE_SECONDS = 60.0
      private_constant :LIMIT_SECONDS, :PATIENCE_SECONDS

      # @param word [String] a process number
      # @raise [Culet::Error] when there is no such process
      def initialize(word, patience: PATIENCE_SECONDS)
        absence = "process #{word} does not follow which of its code runs; start it with `culet require --unused -- COMMAND`, or with " \
                  "#{RubyOptions.advice("unused")} in its environment"
        @conversation = Agent::Conversation.new(word, verb: "require --unused", absence: absence)
        @patience = patience
      end

      # @return [Hash] the answer, as Unused takes it
      # @raise [Culet::Error] when it does not answer; the message says why and what to do
      def call
        text = @conversation.ask("unused", limit_seconds: LIMIT_SECONDS, wait_seconds: @patience)
        Unused.parse(text, name: "the answer of process #{@conversation.pid}")
      end
    end
  end
end
