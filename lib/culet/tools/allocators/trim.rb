# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/ruby_options"

module Culet
  module Allocators
    # The setting that a contender has besides its allocator's own: whether Ruby gives free memory back after its major
    # garbage collections (`culet/auto`). Ruby is told through RUBYOPT, `culet/auto` through CULET_TRIM.
    class Trim
      KEY = "trim"
      VARIABLE = "CULET_TRIM"
      FEATURE = "culet/auto"
      # What stands after "trim=", and what each means, for --help. The first is what the key alone means.
      MODES = { "background" => "free memory goes back after major collections, by a thread of its own (culet/auto)",
                "now" => "the same, at once, in the Ruby thread that swept",
                "off" => "not, even though the program loads culet/auto" }.freeze
      DEFAULT = MODES.keys.first
      # As the first word of CULET_TRIM; the others are KEY=VALUE.
      MODE_WORD = /\A\w+\z/
      private_constant :DEFAULT, :MODE_WORD

      # @param word [String] one setting as written, e.g. "trim=now"
      # @return [Boolean] whether it is this one, whatever its value
      def self.setting?(word) = word[/\A[^=]*/] == KEY

      # @param words [Array<String>] those of one contender that are this setting
      # @return [Trim]
      # @raise [UsageError] when it is given twice, or has no such value
      def self.parse(words)
        raise UsageError, "#{KEY} is given twice; give it once" if words.size > 1
        return new if words.empty?

        _, value = words.first.split("=", 2)
        return new(value || DEFAULT) if value.nil? || MODES.key?(value)

        raise UsageError, "#{KEY} takes #{MODES.keys.join(", ")}, or nothing, not #{value.inspect}"
      end

      # @return [String, nil] a key of MODES; nil where nothing is said, so that it is as the program has it
      attr_reader :mode

      # @param mode [String, nil]
      def initialize(mode = nil)
        @mode = mode
      end

      # @return [Boolean] whether memory is to be given back
      def on? = !mode.nil? && mode != "off"

      # @return [String, nil] the canonical text; nil where nothing is said
      def spec = mode && (mode == DEFAULT ? KEY : "#{KEY}=#{mode}")

      # The variables to merge into a child's environment.
      #
      # @param base [#[]] the environment the child would have
      # @param isolated [Boolean] nothing that `base` says about trimming counts: without this setting there is none
      # @return [Hash{String => String, nil}] nil means: unset
      # @raise [Culet::Error] when the library's path cannot be written in RUBYOPT
      def environment(base, isolated:)
        merged = {}
        merged["RUBYOPT"] = RubyOptions.loading(FEATURE, base["RUBYOPT"]) if on?
        wish = isolated ? wish_alone(base) : wish_beside(base[VARIABLE])
        merged[VARIABLE] = wish if wish != base[VARIABLE]
        merged
      end

      private

      # Without RUBYOPT's word a program has nothing to do with it, so nothing need be said.
      def wish_alone(base)
        return mode == DEFAULT ? nil : mode if mode

        "off" if base["RUBYOPT"].to_s.include?(FEATURE)
      end

      # What else the variable says, minimum and interval, is kept.
      def wish_beside(text)
        return text if mode.nil?

        words = text.to_s.split(",").map(&:strip).grep_v(MODE_WORD)
        words.unshift(mode) if text || mode != DEFAULT
        words.join(",") unless words.empty?
      end
    end
  end
end
