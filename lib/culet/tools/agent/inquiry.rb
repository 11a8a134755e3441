# frozen_string_literal: true

require_relative "../../system/shape"
require_relative "conversation"
require_relative "../../runtime/agent/supplement"

module Culet
  module Agent
    # Asks the agent in another process what its Ruby objects hold.
    class Inquiry
      # What else is wanted than counts, as in ext/culet/agent/objects.h.
      DATA = 1
      CLASSES = 2
      # Of what a process tells, what is used at once; the rest is checked with the snapshot that it comes to be in.
      OBJECTS = { "seconds" => Shape::SECONDS, "complete" => Shape::BOOLEAN, "count" => Shape::COUNT, "why" => Shape::TEXT }.freeze
      NAMES = { "old_bits" => Shape::COUNT, "names" => [Shape.tuple(Shape::COUNT, Shape::TEXT)] }.freeze
      private_constant :DATA, :CLASSES, :OBJECTS, :NAMES

      # @param pid [Integer, String] a process number
      # @param data [Boolean] whether extensions' objects are asked for their sizes
      # @param classes [Boolean] whether it is to tell what its classes are called
      # @param limit_seconds [Float] counting stops after that
      # @param wait_seconds [Float] how long its main thread may take until it begins
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, data: true, classes: false, limit_seconds: Supplement::LIMIT_SECONDS, wait_seconds: 10.0)
        @conversation = Conversation.new(pid)
        @asked = (data ? DATA : 0) + (classes ? CLASSES : 0)
        @times = { limit_seconds: limit_seconds, wait_seconds: wait_seconds }
      end

      # @return [Supplement]
      # @raise [Culet::Error] when the process has no agent or does not answer; the message says why and what to do
      def call
        supplement = Supplement.new(@conversation.ask("data=#{@asked}", **@times))
        raise Error, @conversation.strange unless supplement.fact("objects")

        { "objects" => OBJECTS, "classes" => NAMES }.each do |kind, spec|
          fact = supplement.fact(kind)
          Shape.check(fact, spec, name: "what process #{@conversation.pid} told") if fact
        end
        supplement
      end
    end
  end
end
