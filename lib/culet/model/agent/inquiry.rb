# frozen_string_literal: true

require_relative "../../system/agent/conversation"
require_relative "../../system/shape"
require_relative "records"

module Culet
  module Agent
    # Requests the object counts of another process.
    class Inquiry
      # Options of a request beyond counts, as in ext/culet/agent/objects.h.
      DATA = 1
      CLASSES = 2
      # The fields that are used at once; the others are checked with the snapshot.
      OBJECTS = { "seconds" => Shape::SECONDS, "complete" => Shape::BOOLEAN,
                  "count" => Shape::COUNT, "why" => Shape::TEXT }.freeze
      NAMES = { "old_bits" => Shape::COUNT, "names" => [Shape.tuple(Shape::COUNT, Shape::TEXT)] }.freeze
      private_constant :DATA, :CLASSES, :OBJECTS, :NAMES

      # @param pid [Integer, String] a process number
      # @param data [Boolean] whether to request the sizes of extension objects
      # @param classes [Boolean] whether to request the names of classes
      # @param limit_seconds [Float] time limit of the count
      # @param wait_seconds [Float] longest wait for its main thread
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, data: true, classes: false, limit_seconds: Records::LIMIT_SECONDS, wait_seconds: 10.0)
        @conversation = Conversation.new(pid)
        @asked = (data ? DATA : 0) + (classes ? CLASSES : 0)
        @times = { limit_seconds: limit_seconds, wait_seconds: wait_seconds }
      end

      # @return [Records]
      # @raise [Culet::Error] when the process has no agent or does not answer
      def call
        records = Records.new(@conversation.ask("data=#{@asked}", **@times))
        raise Error, @conversation.strange unless records.fact("objects")

        { "objects" => OBJECTS, "classes" => NAMES }.each do |kind, spec|
          fact = records.fact(kind)
          Shape.check(fact, spec, name: "the answer of process #{@conversation.pid}") if fact
        end
        records
      end
    end
  end
end
