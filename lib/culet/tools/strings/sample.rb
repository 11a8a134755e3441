# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Strings
    # One string, as far as its content may be shown.
    class Sample
      # Characters shown.
      LONGEST = 60
      private_constant :LONGEST

      # @param fields [Hash{Symbol => Object}] from the extension
      def initialize(fields)
        @fields = fields
      end

      # @return [Integer] bytes of its text
      def bytes = @fields[:bytes]

      # @return [Integer] bytes of slot and buffer
      def held_bytes = @fields[:held_bytes]

      # @param longest [Integer] characters, escapes and all, between the quotes
      # @return [String, nil] its text, quoted, escaped and cut; nil without content
      def text(longest = LONGEST)
        sample = @fields[:sample] or return

        all = whole_characters(sample.dup.force_encoding(Encoding::UTF_8))
        shown = fitting(all.each_char, longest)
        cut = shown.size < all.size || sample.bytesize < bytes
        "\"#{shown.join}\"#{"..." if cut}"
      end

      # @param room [Integer] characters, quotes and all
      # @return [String] its text with the middle omitted, if known completely; else as `to_s`
      def ends(room)
        whole = text(Float::INFINITY)
        return to_s([room - 5, 0].max) if whole.nil? || @fields[:sample].bytesize < bytes
        return whole if whole.size <= room

        start = [(room - 3) / 3, 1].max
        "#{whole[0, start]}...#{whole[-[room - 3 - start, 1].max..]}"
      end

      # @param longest [Integer] characters
      # @return [String] its text; without content its size and mark
      def to_s(longest = LONGEST) = text(longest) || [Text::Size.human(bytes), mark].compact.join(" #")

      # Equal for equal strings of one report: a digest with a random secret.
      #
      # @return [String, nil] eight hexadecimal digits; nil for unknown content
      def mark = @fields[:mark]

      private

      # @return [Array<String>] the printed characters that fit
      def fitting(characters, room)
        characters.map { |character| printed(character) }.take_while { |shown| (room -= shown.size) >= 0 }
      end

      # Invisible and bidirectional characters are escaped too.
      def printed(character) = character.inspect[1..-2].gsub(/\p{Cf}/) { |one| format("\\u%04X", one.ord) }

      # A sample may be cut within a character.
      def whole_characters(text)
        3.times do
          break if text.valid_encoding?

          shorter = text.byteslice(0, text.bytesize - 1)
          return text unless @fields[:sample].bytesize < bytes

          text = shorter
        end
        text
      end
    end
  end
end
