# frozen_string_literal: true

module Culet
  module Allocators
    # One setting of one allocator: `key` as written after the colon, the
    # environment variable (or glibc tunable) it becomes, and the values it takes.
    Setting = Struct.new(:key, :variable, :values, :about, :tunable, keyword_init: true) do
      # @param text [String] the value as the user wrote it
      # @return [Boolean]
      def accepts?(text) = values.is_a?(Array) ? values.include?(text) : values.match?(text)

      # @return [String] what to write, for an error message
      def expected
        return values.join(", ") if values.is_a?(Array)

        { INTEGER => "a whole number", NUMBER => "a number", SWITCH => "0 or 1" }.fetch(values, "a word or a number")
      end
    end

    # The forms of a value.
    INTEGER = /\A\d+\z/
    NUMBER = /\A\d+(?:\.\d+)?\z/
    SWITCH = /\A[01]\z/
    WORD = /\A[A-Za-z0-9_.:|-]+\z/
  end
end
