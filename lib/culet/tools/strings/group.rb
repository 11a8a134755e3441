# frozen_string_literal: true

require_relative "sample"

module Culet
  module Strings
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
        return "use the frozen string itself, without dup or +" if interned? && shared?
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
