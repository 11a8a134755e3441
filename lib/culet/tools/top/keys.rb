# frozen_string_literal: true

module Culet
  module Top
    # Keys, from the bytes that a terminal sends for them.
    class Keys
      # Of xterm and what follows it, in both modes of the cursor keys (ctlseqs, "PC-Style Function Keys").
      SEQUENCES = { "A" => :up, "B" => :down, "C" => :right, "D" => :left, "H" => :home, "F" => :end,
                    "1~" => :home, "4~" => :end, "5~" => :page_up, "6~" => :page_down, "7~" => :home,
                    "8~" => :end }.freeze
      # Control Sequence Introducer or Single Shift Three, parameters, final character; or any character.
      KEY = %r{\e(?:\[([0-?]*[ -/]*[@-~])|O([ -~]))|(.)}m
      # The beginning of a sequence, or of a character in UTF-8, at the end.
      PARTIAL = %r{(?:\e(?:\[[0-?]*[ -/]*|O)?|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\z}n
      CHARACTERS = { "\r" => :enter, "\n" => :enter, "\x7f" => :backspace, "\b" => :backspace, "\e" => :escape }.freeze
      private_constant :SEQUENCES, :KEY, :PARTIAL, :CHARACTERS

      def initialize
        @bytes = +"".b
      end

      # @param bytes [String] what the terminal has sent
      # @return [Array<Symbol, String>] the keys that are complete: characters, or names of other keys
      def feed(bytes)
        @bytes << bytes
        complete = @bytes.slice!(0, @bytes.index(PARTIAL) || @bytes.bytesize)
        complete.force_encoding(Encoding::UTF_8).scrub("").scan(KEY).filter_map do |control, shifted, text|
          text ? CHARACTERS.fetch(text) { text if text.match?(/\A[[:print:]]\z/) } : SEQUENCES[control || shifted]
        end
      end

      # Whether bytes are left that can be the beginning of a key: the Escape key itself, or a sequence.
      def pending? = !@bytes.empty?

      # Takes what is left as it is: nothing follows.
      #
      # @return [Array<Symbol, String>]
      def flush
        keys = @bytes.start_with?("\e") ? [:escape] : []
        @bytes.clear
        keys
      end
    end
  end
end
