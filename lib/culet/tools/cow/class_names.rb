# frozen_string_literal: true

require_relative "../agent/inquiry"
require_relative "../../errors"

module Culet
  module Cow
    # What a process calls its classes, and how it marks old objects: told by the agent in it. Its children have the same
    # classes at the same addresses, so the parent is asked alone: whoever answers runs code, and writes to pages that it
    # shares.
    class ClassNames
      # @param pids [Array<Integer>] the families' first processes
      # @raise [Culet::Error] when one has no agent or does not answer; the message says why and what to do
      def initialize(pids)
        @names = {}
        pids.each { |pid| ask(pid) }
      end

      # @param address [Integer] of a class
      # @return [String, nil] nil: it has no name, or came after the question
      def [](address) = @names[address]

      # @return [Integer] bits of an object's first word that together say that it is old; 0: not told
      attr_reader :old_bits

      private

      def ask(pid)
        told = Agent::Inquiry.new(pid, data: false, classes: true).call.fact("classes")
        raise Error, "the agent in process #{pid} does not tell the names of classes: it is of another version of culet, or its Ruby's objects cannot be counted" unless told

        @old_bits = told["old_bits"].to_i
        told["names"].each { |address, name| @names[address] = name }
      end
    end
  end
end
