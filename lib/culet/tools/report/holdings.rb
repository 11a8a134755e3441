# frozen_string_literal: true

module Culet
  module Report
    # Divides malloc's level: Ruby objects by type, as the process counted them, and the rest, which is
    # known to C code only (tables of libraries and of Ruby, and what malloc rounds up).
    #
    # Objects report requested bytes, the level has resident bytes. If memory was requested and never written, or
    # counted twice, the rest is negative and is printed so.
    class Holdings
      # Ruby's type => title.
      TITLES = {
        "T_STRING" => "strings", "T_ARRAY" => "arrays", "T_HASH" => "hashes",
        "T_OBJECT" => "plain objects", "T_STRUCT" => "structs",
        "T_CLASS" => "classes", "T_MODULE" => "modules", "T_ICLASS" => "included modules",
        "T_REGEXP" => "regexps", "T_MATCH" => "matches",
        "T_FILE" => "files and sockets", "T_DATA" => "C objects (T_DATA)", "T_IMEMO" => "compiled code and internals",
        "T_SYMBOL" => "symbols", "T_BIGNUM" => "big numbers", "T_ZOMBIE" => "objects being finalized"
      }.freeze

      # The title of the rest, by whether blocks in use are known.
      REST = { true => "known to C code only", false => "known to C code only, or free" }.freeze

      # One holder: Ruby's name for it, its title, and its bytes.
      Entry = Struct.new(:name, :title, :bytes, keyword_init: true)

      # @param memory [SnapshotLevels]
      # @return [Holdings, nil] nil without counts in the snapshot
      def self.of(memory) = memory.snapshot.objects&.counted? ? new(memory) : nil

      # @return [Scope::ObjectsPart]
      attr_reader :objects

      # @param memory [SnapshotLevels] of a snapshot that has objects
      def initialize(memory)
        @memory = memory
        @objects = memory.snapshot.objects
      end

      # @return [String] the level that is divided; used and free blocks together where these cannot be told apart
      def level = @memory.snapshot.allocator.blocks? ? "malloc_used" : "malloc_unsplit"

      # @return [Array<Entry>] types that hold memory, the largest first
      def entries
        @entries ||= objects.types.reject { |type| type.malloc_bytes.zero? }
                            .sort_by { |type| [-type.malloc_bytes, type.name] }.map do |type|
          Entry.new(name: type.name, title: TITLES.fetch(type.name, type.name), bytes: type.malloc_bytes)
        end
      end

      # @return [Integer] bytes of all objects
      def ruby_bytes = entries.sum(&:bytes)

      # @return [Integer] bytes of the level less those; may be negative
      def rest_bytes = @memory.levels.fetch(level) - ruby_bytes

      # @return [String] the title of that
      def rest_title = REST.fetch(level == "malloc_used")

      # @return [Hash{String => Object}] for JSON; ruby_bytes and rest_bytes add up to the level
      def to_h
        { "level" => level, "level_bytes" => @memory.levels.fetch(level), "ruby_bytes" => ruby_bytes,
          "types" => entries.to_h { |entry| [entry.name, entry.bytes] }, "rest_bytes" => rest_bytes,
          "complete" => objects.complete }
      end
    end
  end
end
