# frozen_string_literal: true

require_relative "../../model/agent/inquiry"
require_relative "../../errors"

module Culet
  module Cow
    # Names of classes and the flag bits of old objects, from the agent in a process. Only parents are queried: children
    # have the same classes at the same addresses, and a worker that answers unshares pages.
    class ClassNames
      # @param pids [Array<Integer>] the trees' first processes
      # @raise [Culet::Error] without an agent or without its answer; the message gives reason and remedy
      def initialize(pids)
        @names = {}
        pids.each { |pid| query(pid) }
      end

      # @param address [Integer] of a class
      # @return [String, nil] nil for a class without a name or one created later
      def [](address) = @names[address]

      # @return [Integer] the bits of an object's first word that mark it as old; 0: unknown
      attr_reader :old_bits

      private

      def query(pid)
        answer = Agent::Inquiry.new(pid, data: false, classes: true).call.fact("classes")
        unless answer
          raise Error, "the agent in process #{pid} does not provide class names: " \
                       "it is another version of culet, or its Ruby's objects cannot be walked"
        end

        @old_bits = answer["old_bits"].to_i
        answer["names"].each { |address, name| @names[address] = name }
      end
    end
  end
end
