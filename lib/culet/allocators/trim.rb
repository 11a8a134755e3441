# frozen_string_literal: true

require_relative "../errors"
require_relative "../system/ruby_options"

module Culet
  module Allocators
    # The setting of every allocator: whether Ruby returns free memory after major garbage collections (`culet/auto`).
    # RUBYOPT loads `culet/auto`, CULET_TRIM holds its settings.
    class Trim
      # The key of the setting.
      KEY = "trim"
      # The environment variable that culet/auto reads.
      VARIABLE = "CULET_TRIM"
      # The file that a program loads.
      FEATURE = "culet/auto"
      # Value => help text. The first is the value of the key alone.
      MODES = { "background" => "return free memory after major GCs, in a thread",
                "now" => "the same in the Ruby thread, at once",
                "off" => "never, even if the program loads culet/auto" }.freeze
      DEFAULT = MODES.keys.first
      # Values of the first word of CULET_TRIM; the others are KEY=VALUE.
      MODE_WORD = /\A\w+\z/
      private_constant :DEFAULT, :MODE_WORD

      # @param word [String] one setting as written, e.g. "trim=now"
      # @return [Boolean] whether it is this one, whatever its value
      def self.setting?(word) = word[/\A[^=]*/] == KEY

      # @param words [Array<String>] the settings of one candidate that are this one
      # @raise [UsageError] when it is given twice, or has no such value
      def self.parse(words)
        raise UsageError, "#{KEY} is given twice; give it once" if words.size > 1
        return new if words.empty?

        _, value = words.first.split("=", 2)
        return new(value || DEFAULT) if value.nil? || MODES.key?(value)

        raise UsageError, "#{KEY} takes #{MODES.keys.join(", ")}, or nothing, not #{value.inspect}"
      end

      # @return [String, nil] a key of MODES; nil leaves trims as the program sets them
      attr_reader :mode

      # @param mode [String, nil]
      def initialize(mode = nil)
        @mode = mode
      end

      # @return [Boolean] whether it enables trims
      def on? = !mode.nil? && mode != "off"

      # @return [String, nil] the canonical text; nil without a mode
      def spec = mode && (mode == DEFAULT ? KEY : "#{KEY}=#{mode}")

      # The variables to merge into a child's environment.
      #
      # @param base [#[]] the environment the child would have
      # @param isolated [Boolean] whether to disregard the trim settings of `base`
      # @return [Hash{String => String, nil}] nil means: unset
      # @raise [Culet::Error] when the library's path cannot be written in RUBYOPT
      def environment(base, isolated:)
        merged = {}
        merged["RUBYOPT"] = RubyOptions.loading(FEATURE, base["RUBYOPT"]) if on?
        value = isolated ? value_alone(base) : value_merged(base[VARIABLE])
        merged[VARIABLE] = value if value != base[VARIABLE]
        merged
      end

      private

      # Without culet/auto in RUBYOPT the variable is not needed.
      def value_alone(base)
        return mode == DEFAULT ? nil : mode if mode

        "off" if base["RUBYOPT"].to_s.include?(FEATURE)
      end

      # Keeps the other settings of the variable, minimum and interval.
      def value_merged(text)
        return text if mode.nil?

        words = text.to_s.split(",").map(&:strip).grep_v(MODE_WORD)
        words.unshift(mode) if text || mode != DEFAULT
        words.join(",") unless words.empty?
      end
    end
  end
end
