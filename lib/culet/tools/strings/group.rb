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

    # Equal strings, of which one would suffice; or a string and its suffixes, which could share its buffer.
    class Group
      # A bit of a record's flags, as in ext/culet/strings/record.h.
      SHARED = 1 << 1
      private_constant :SHARED

      # @return [String] "duplicate" or "suffix"
      attr_reader :kind

      # @return [Integer] all equal strings, or the suffixes that could share
      attr_reader :count

      # @return [Integer] bytes of their slots and buffers, with the one to keep
      attr_reader :held_bytes

      # @return [Integer] savable bytes
      attr_reader :gain_bytes

      # @return [Array<Array(String, Integer)>] allocation sites of savable strings: "FILE:LINE" and count
      attr_reader :sites

      # @param kind [String] "duplicate" or "suffix"
      # @param fields [Hash{Symbol => Object}] from the extension
      # @param names [Hash{Integer => String}] of allocation sites
      def initialize(kind, fields, names)
        @kind = kind
        @fields = fields
        @count, @held_bytes, @gain_bytes = fields.values_at(:count, :held_bytes, :gain_bytes)
        @sites = fields[:sites].filter_map { |site, count| [names[site], count] if names.key?(site) }
      end

      def duplicate? = kind == "duplicate"

      # @return [Sample] of the string to keep
      def kept = @kept ||= Sample.new(@fields[:kept])

      # @return [Array<Sample>] the longest suffixes
      def parts = @parts ||= @fields[:parts].map { |part| Sample.new(part) }

      # @return [Integer] number of frozen strings
      def frozen = @fields[:frozen]

      # @return [Boolean] whether one of them is interned
      def interned? = @fields[:interned].positive?

      # @return [Boolean] whether some share a buffer
      def shared? = @fields[:flags].anybits?(SHARED)

      # @return [String] what to write instead
      def remedy
        unless duplicate?
          return "freeze the longer string and slice it, whole[from..]: a slice to the end shares the buffer"
        end
        if kept.bytes.zero?
          return "a frozen literal (# frozen_string_literal: true) instead of an empty string each time"
        end
        if interned? && shared?
          return "some are copies of a frozen string: use that one, without dup or +, and with " \
                 "# frozen_string_literal: true where it is a literal"
        end
        return "one of them is interned: use a frozen literal, or -string" if interned?

        "deduplicate with -string where the string is created or stored (the result is frozen)"
      end

      # @return [Hash{String => Object}]
      def to_h
        suffixes = {}
        suffixes["suffixes"] = parts.map { |part| { "bytes" => part.bytes, "sample" => part.text } } unless duplicate?
        { "kind" => kind, "count" => count, "held_bytes" => held_bytes, "gain_bytes" => gain_bytes,
          "bytes" => kept.bytes, "sample" => kept.text, "mark" => (kept.mark unless kept.text),
          "frozen" => frozen, "interned" => interned?,
          "sites" => sites.map { |site, number| { "site" => site, "count" => number } }, "remedy" => remedy,
          **suffixes }
      end
    end
  end
end
