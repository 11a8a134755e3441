# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/agent/conversation"
require_relative "../../system/foreign_json"
require_relative "../../system/shape"

module Culet
  # Who keeps the memory of a Ruby process.
  module Retention
    # Asks for an analysis of all objects of a process, or reads a dump of ObjectSpace.dump_all. The analysis is made in C
    # (ext/culet/retain/DESIGN.md).
    module Reading
      # Default limits: CPU time in seconds, and memory of the analysis in bytes.
      LIMIT_SECONDS = 60.0
      LIMIT_BYTES = 4 << 30
      # Largest answer, in bytes.
      MOST_BYTES = 64 << 20
      # Deepest nesting of an answer: a path in a list in a holder in a list.
      NESTING = 12
      # The figures that identify an analysis; what is shown of it is checked where it is used.
      SHAPE = { "version" => 1, "source" => Shape.one_of("process", "dump"), "total_bytes" => Shape::COUNT,
                "holders" => [{ "id" => Shape::COUNT, "kind" => Shape::TEXT }], "sets" => [{ "bytes" => Shape::COUNT }] }.freeze
      private_constant :MOST_BYTES, :NESTING, :SHAPE

      module_function

      # @param pid [Integer, String] a process number
      # @param content [Boolean] whether contents and keys of strings may be shown
      # @param duplicates [Boolean] whether equal strings are searched for
      # @param class_name [String, nil] whose instances are looked at
      # @param address [Integer, nil] of an object whose paths are looked for
      # @param limit_seconds [Float] of CPU time
      # @param limit_bytes [Integer] memory of the analysis
      # @param wait_seconds [Float] longest wait for the main thread of the process
      # @return [Hash{String => Object}] the analysis
      # @raise [Culet::Error] when the process has no agent, or cannot be analysed
      def of_process(pid, content: false, duplicates: false, class_name: nil, address: nil,
                     limit_seconds: LIMIT_SECONDS, limit_bytes: LIMIT_BYTES, wait_seconds: 10.0)
        conversation = Agent::Conversation.new(pid, verb: "retain", most_bytes: MOST_BYTES)
        question = request(content: content, duplicates: duplicates, class_name: class_name, address: address,
                           limit_bytes: limit_bytes)
        text = conversation.ask(question, limit_seconds: limit_seconds, wait_seconds: wait_seconds)
        Shape.check(ForeignJson.parse(text, max_nesting: NESTING), SHAPE, name: "the answer of process #{conversation.pid}")
      rescue JSON::ParserError
        raise Error, conversation.strange
      end

      # @return [String] the request, without its limits of time
      def request(content:, duplicates:, class_name:, address:, limit_bytes:, heapsnapshot: false)
        raise Error, "a class's name has no spaces" if class_name.to_s.match?(/[[:space:]]/)

        bits = { "content" => content, "duplicates" => duplicates, "heapsnapshot" => heapsnapshot }
        ["retain", *bits.map { |name, bit| "#{name}=#{bit ? 1 : 0}" }, "limit_bytes=#{Integer(limit_bytes)}",
         format("path=0x%x", address || 0), "class=#{class_name.nil? || class_name.empty? ? "-" : class_name}"].join(" ")
      end
      private_class_method :request
    end
  end
end
