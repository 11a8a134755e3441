# frozen_string_literal: true

require_relative "../allocators"
require_relative "../errors"

module Culet
  module CLI
    # The options --allocators and --baseline of the verbs that set allocators against each other.
    module Candidates
      private

      # @param default [Array<String>] candidates when none are named
      # @return [Array<Allocators::Choice>] each once
      # @raise [UsageError] when the option names none
      def candidates(default)
        choices = (options[:allocators] || default).map { |spec| Allocators.parse(spec) }.uniq(&:spec)
        if choices.empty?
          raise UsageError, "--allocators names no allocator; write e.g. --allocators glibc,jemalloc,culet"
        end

        choices
      end

      # @return [String] the candidate that the others are compared with
      # @raise [UsageError] when it is none of the candidates
      def baseline(choices)
        return choices.first.spec unless options[:baseline]

        wanted = Allocators.parse(options[:baseline]).spec
        return wanted if choices.any? { |choice| choice.spec == wanted }

        raise UsageError, "the baseline #{wanted} is not among #{choices.map(&:spec).join(", ")}; " \
                          "add it to --allocators"
      end
    end
  end
end
