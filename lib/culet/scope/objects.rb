# frozen_string_literal: true

require_relative "part"

module Culet
  module Scope
    # Objects of one type, as the process itself counted them.
    class TallyPart < Part
      numbers :count, :slot_bytes, :malloc_bytes, :elsewhere_bytes, :shared, :untold
      texts :name
    end

    # The memory of Ruby's objects, as counted by the process itself through culet's agent.
    class ObjectsPart < Part
      numbers :count, :slot_bytes, :malloc_bytes, :elsewhere_bytes
      texts :why
      truths :complete, :data_asked

      # @return [Array<TallyPart>] by Ruby's types ("T_STRING"), those with most bytes first
      attr_reader :types

      # @return [Array<TallyPart>] the parts of T_DATA, by what the extension calls it
      attr_reader :data

      def initialize(fields)
        super
        @types, @data, _internals = %w[types data internals].map { |key| tallies(fields[key]) }
        raise Malformed, "objects have no seconds" unless fields["seconds"].is_a?(Numeric)
      end

      # @return [Boolean] whether anything was counted
      def counted? = types.any?

      # @return [Float] how long all of Ruby stood still for it
      def seconds = @fields["seconds"]

      private

      def tallies(list)
        raise Malformed, "objects have no list of types" unless list.is_a?(Array) && list.all?(Hash)

        list.map { |fields| TallyPart.new(fields) }
      end
    end
  end
end
