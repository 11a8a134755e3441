# frozen_string_literal: true

module Culet
  module Top
    # Keys, from the bytes that a terminal sends for them.
    class Keys
      # Of xterm and what follows it, in both modes of the cursor keys (ctlseqs, "PC-Style Function Keys").
      SEQUENCES = { "A" => :up, "B" => :down, "C" => :right, "D" => :left, "H" => :home, "F" => :end,
                    "1~" => :home, "4~" => :end, "5~" => :page_up, "6~" => :page_down, "7~" => :home,
                    "8~" => :end }.freeze
      # Control Sequence Introducer or Single Shift Three, parameters, final character.
      SEQUENCE = %r{\A\e(?:\[([0-?]*[ -/]*[@-~])|O([ -~]))}
      # The beginning of one.
      PARTIAL = %r{\A\e(?:\[[0-?]*[ -/]*|O)?\z}
      CHARACTERS = { "\r" => :enter, "\n" => :enter, "\x7f" => :backspace, "\b" => :backspace, "\e" => :escape }.freeze
      private_constant :SEQUENCES, :SEQUENCE, :PARTIAL, :CHARACTERS

      def initialize
        @bytes = +"".b
      end

      # @param bytes [String] what the terminal has sent
      # @return [Array<Symbol, String>] the keys that are complete: characters, or names of other keys
      def feed(bytes)
        @bytes << bytes
        keys = []
        until @bytes.empty? || partial?
          key = shift
          keys << key if key
        end
        keys
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

      private

      def partial?
        return @bytes.match?(PARTIAL) if @bytes.start_with?("\e")

        first = @bytes.getbyte(0)
        first >= 0xc2 && @bytes.bytesize < character_bytes(first) && !character(@bytes.bytesize).valid_encoding? &&
          @bytes.byteslice(1..).each_byte.all? { |byte| byte.between?(0x80, 0xbf) }
      end

      def shift
        if (match = SEQUENCE.match(@bytes))
          @bytes.slice!(0, match.end(0))
          return SEQUENCES[match[1] || match[2]]
        end

        text = character(character_bytes(@bytes.getbyte(0)))
        text = character(1) unless text.valid_encoding?
        @bytes.slice!(0, text.bytesize)
        CHARACTERS.fetch(text) { text if text.valid_encoding? && text.match?(/\A[[:print:]]\z/) }
      end

      # Of UTF-8.
      def character_bytes(first)
        case first
        when 0xc2..0xdf then 2
        when 0xe0..0xef then 3
        when 0xf0..0xf4 then 4
        else 1
        end
      end

      def character(bytes) = @bytes.byteslice(0, bytes).force_encoding(Encoding::UTF_8)
    end
  end
end
