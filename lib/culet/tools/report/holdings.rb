# frozen_string_literal: true

require_relative "ledger"

module Culet
  module Report
    # Who holds what malloc gave: Ruby's objects by type, as the process counted them, and the rest, which only C code
    # knows of: libraries' and Ruby's own tables, and what malloc rounds up. It does not change the ledger's levels, it
    # divides one of them.
    #
    # The objects tell what they asked for, the level is what is resident: where they asked for memory that was never
    # written, or count something twice, the rest is negative, and shown so.
    class Holdings
      # Ruby's type => what it is called.
      TITLES = {
        "T_STRING" => "strings", "T_ARRAY" => "arrays", "T_HASH" => "hashes", "T_OBJECT" => "plain objects", "T_STRUCT" => "structs",
        "T_CLASS" => "classes", "T_MODULE" => "modules", "T_ICLASS" => "included modules", "T_REGEXP" => "regexps", "T_MATCH" => "matches",
        "T_FILE" => "files and sockets", "T_DATA" => "C objects (T_DATA)", "T_IMEMO" => "compiled code and internals",
        "T_SYMBOL" => "symbols", "T_BIGNUM" => "big numbers", "T_ZOMBIE" => "objects being finalized"
      }.freeze

      # One holder: Ruby's name of it, what to call it, and its bytes.
      Entry = Struct.new(:name, :title, :bytes, keyword_init: true)

      # @param ledger [Ledger]
      # @return [Holdings, nil] nil where the process was not asked, or could not count
      def self.of(ledger) = ledger.snapshot.objects&.counted? ? new(ledger) : nil

      # @return [Scope::ObjectsPart]
      attr_reader :objects

      # @param ledger [Ledger] of a snapshot that has objects
      def initialize(ledger)
        @ledger = ledger
        @objects = ledger.snapshot.objects
      end

      # @return [String] the ledger's level that is divided: where used and free are not told apart, both together
      def level = @ledger.snapshot.allocator.blocks? ? "malloc_used" : "malloc_unsplit"

      # @return [Array<Entry>] types that hold any of it, those with most first
      def entries
        @entries ||= objects.types.reject { |type| type.malloc_bytes.zero? }.sort_by { |type| [-type.malloc_bytes, type.name] }
                            .map { |type| Entry.new(name: type.name, title: TITLES.fetch(type.name, type.name), bytes: type.malloc_bytes) }
      end

      # @return [Integer] what all objects hold
      def ruby_bytes = entries.sum(&:bytes)

      # @return [Integer] the level less that; may be negative
      def rest_bytes = @ledger.levels.fetch(level) - ruby_bytes

      # @return [String] what to call that
      def rest_title = level == "malloc_used" ? "C code alone knows" : "C code alone, or free"

      # @return [Hash{String => Object}] for JSON; ruby_bytes and rest_bytes add up to the level
      def to_h
        { "level" => level, "level_bytes" => @ledger.levels.fetch(level), "ruby_bytes" => ruby_bytes,
          "types" => entries.to_h { |entry| [entry.name, entry.bytes] }, "rest_bytes" => rest_bytes, "complete" => objects.complete }
      end
    end
  end
end
