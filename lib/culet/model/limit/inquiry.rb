# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/agent/conversation"
require_relative "../../system/foreign_json"
require_relative "../../system/processes"
require_relative "../../system/shape"
require_relative "source"

module Culet
  module Limit
    # The memory limit of a process: as its agent reports it if it has culet/limit, else as the kernel shows it.
    class Inquiry
      # Time limits of an answer, and of the wait for its start.
      LIMIT_SECONDS = 5.0
      WAIT_SECONDS = 3.0
      # More than 64 steps need.
      MOST_BYTES = 64 << 10
      STEP = { "at" => Shape::SECONDS, "step" => Shape::TEXT, "freed_bytes" => Shape::COUNT }.freeze
      ANSWER = { "limit_bytes" => Shape.nullable(Shape::COUNT), "source" => Shape::TEXT,
                 "used_bytes" => Shape.nullable(Shape::COUNT), "headroom_bytes" => Shape.nullable(Shape::COUNT),
                 "steps" => [STEP] }.freeze
      private_constant :LIMIT_SECONDS, :WAIT_SECONDS, :MOST_BYTES, :STEP, :ANSWER

      # @return [Integer] process number
      attr_reader :pid

      # @return [Array<String>] sentences: files that could not be used, an agent that did not answer
      attr_reader :problems

      # @param pid [Integer, String] a process number
      # @param root [String] the folder that has /proc and the mounted control groups
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, root: "/")
        @root = root
        @process = Processes::Live.find(pid)
        @pid = @process.pid
        @problems = []
      end

      # @return [Hash{String => Object}] "pid", "kept" (whether the process has culet/limit), and the keys of
      #   Culet::Limit.status
      # @raise [Culet::Error] when the process has ended
      def call
        answer = @pid == ::Process.pid ? nil : ask
        { "pid" => @pid, "kept" => !answer.nil? }.merge(answer || outside)
      end

      private

      # @return [Hash, nil] nil without culet/limit
      def ask
        return unless Agent::Endpoint.new(@process).listens?

        conversation = Agent::Conversation.new(@pid, verb: "limit", most_bytes: MOST_BYTES)
        text = conversation.ask("limit", limit_seconds: LIMIT_SECONDS, wait_seconds: WAIT_SECONDS)
        answer = ForeignJson.parse(text)
        return if answer.is_a?(Hash) && answer["limit_bytes"].nil?

        Shape.check(answer, ANSWER, name: "the answer of process #{@pid}").then { answer.slice(*ANSWER.keys) }
      rescue JSON::ParserError
        refused(conversation.strange)
      rescue Error => e
        refused(e.message)
      end

      def refused(reason)
        @problems << "its agent did not report the steps: #{reason}"
        nil
      end

      def outside
        source = Source.new(pid: @pid, root: @root)
        @problems.concat(source.problems)
        Source.usage(source.bytes, source.description, source.used_bytes).merge("steps" => [])
      end
    end
  end
end
