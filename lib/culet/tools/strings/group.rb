# frozen_string_literal: true

require_relative "sample"

module Culet
  module Strings
    # Strings of one content, of which one would do; or one string and others that it ends with, which could lie in its
    # buffer.
    class Group
      # A bit of a record's flags, as in ext/culet/strings/record.h.
      SHARED = 1 << 1
      private_constant :SHARED

      # @return [String] "duplicate" or "suffix"
      attr_reader :kind

      # @return [Integer] strings: of a duplicate all of them, of a suffix those that could share
      attr_reader :count

      # @return [Integer] bytes of slots and buffers that they hold, with the one that stays
      attr_reader :held_bytes

      # @return [Integer] bytes that would go away
      attr_reader :gain_bytes

      # @return [Array<Array(String, Integer)>] who allocated what would go away, "FILE:LINE" and how many
      attr_reader :sites

      # @param kind [String] "duplicate" or "suffix"
      # @param fields [Hash{Symbol => Object}] as the extension tells them
      # @param names [Hash{Integer => String}] of allocation sites
      def initialize(kind, fields, names)
        @kind = kind
        @fields = fields
        @count, @held_bytes, @gain_bytes = fields.values_at(:count, :held_bytes, :gain_bytes)
        @sites = fields[:sites].filter_map { |site, count| [names[site], count] if names.key?(site) }
      end

      def duplicate? = kind == "duplicate"

      # @return [Sample] of the string that stays
      def kept = @kept ||= Sample.new(@fields[:kept])

      # @return [Array<Sample>] of a suffix: the longest that could lie in it
      def parts = @parts ||= @fields[:parts].map { |part| Sample.new(part) }

      # @return [Integer] how many of them are frozen
      def frozen = @fields[:frozen]

      # @return [Boolean] whether one of them is the one of its content in Ruby's table
      def interned? = @fields[:interned].positive?

      # @return [Boolean] whether some of them share a buffer
      def shared? = @fields[:flags].anybits?(SHARED)

      # @return [String] what to write instead, where it is known who makes them
      def remedy
        return "freeze the longer one and take the end as a slice of it, whole[from..]: that shares its buffer" unless duplicate?
        return "a frozen literal (# frozen_string_literal: true) instead of an empty string each time" if kept.bytes.zero?
        return "use the frozen one as it is, without dup or +" if interned? && shared?
        return "one of them is interned: a frozen literal, or -string, gives that one" if interned?

        "-string where it is made or kept: equal ones become one (they are frozen then)"
      end

      # @return [Hash{String => Object}]
      def to_h
        { "kind" => kind, "count" => count, "held_bytes" => held_bytes, "gain_bytes" => gain_bytes, "bytes" => kept.bytes, "sample" => kept.text, "mark" => (kept.mark unless kept.text),
          "frozen" => frozen, "interned" => interned?, "sites" => sites.map { |site, number| { "site" => site, "count" => number } },
          "remedy" => remedy, **({ "suffixes" => parts.map { |part| { "bytes" => part.bytes, "sample" => part.text } } } unless duplicate?).to_h }
      end
    end
  end
end
