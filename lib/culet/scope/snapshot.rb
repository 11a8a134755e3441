# frozen_string_literal: true

require_relative "part"
require_relative "mapping"
require_relative "region"
require_relative "ruby_page"
require_relative "objects"

module Culet
  module Scope
    # The process as a whole, from its first pause.
    class ProcessPart < Part
      numbers :pid, :page_bytes, :rss_bytes, :pss_bytes, :shared_bytes, :private_dirty_bytes, :swap_bytes
      texts :name, :title, :program, :mode
      seconds :time

      def initialize(fields)
        super
        raise Malformed, "process has page_bytes that are none" unless page_bytes.positive?
      end

      # @return [String, nil] the title that it gave itself, or what the kernel calls it
      def called = title || name
    end

    # Which malloc serves it, and how far its blocks are known.
    class AllocatorPart < Part
      BLOCKS = "blocks"

      texts :name, :library, :level, :why

      # @return [Boolean] whether used and free memory were told apart
      def blocks? = level == BLOCKS
    end

    # Totals of malloc.
    class MallocPart < Part
      numbers :arenas, :heaps, :used_bytes, :free_resident_bytes, :free_returned_bytes, :mmapped_bytes, :mmapped_chunks,
              :metadata_bytes, :tcache_bytes, :trim_bytes, :used_resident_bytes, :metadata_resident_bytes
    end

    # One arena: glibc's, or an allocator's one heap.
    class ArenaPart < Part
      numbers :id, :address, :system_bytes, :used_bytes, :free_bytes, :trim_bytes
      texts :name, :why
      truths :broken
    end

    # Ruby's object heap.
    class RubyPart < Part
      numbers :pages, :page_bytes, :live_bytes, :free_bytes, :overhead_bytes, :live_resident_bytes,
              :free_resident_bytes, :overhead_resident_bytes, :transient_bytes, :transient_resident_bytes
      # nil where the counters were not found, or in a file of an earlier version.
      references :old_objects, :minor_gcs, :major_gcs
      texts :version, :why
      # Hashes: slot_bytes, pages, live, free.
      lists(:slots, "a list of slot sizes") do |one|
        one.is_a?(Hash) && one.values_at("slot_bytes", "pages", "live", "free").all? { |value| number?(value) }
      end
    end

    # Sizes of blocks: bytes from, used, used bytes, free, free bytes.
    class SizesPart < Part
      lists(:buckets, "a list of five numbers each") do |bucket|
        bucket.is_a?(Array) && bucket.size == 5 && bucket.all? { |value| number?(value) }
      end
    end

    # One process at one moment. Parts that the process does not have are nil, lists of them empty.
    #
    # process, allocator, malloc, ruby: Parts; sizes: a Hash as in the stream; mappings, regions, arenas:
    # Arrays of Parts in address order; ruby_pages: Array of RubyPage; problems: Array of
    # sentences; reading: what it took, a Hash as in the stream. Where the process was asked itself: objects: a Part;
    # gc, vm, allocator_statistics: Hashes. environment: as of Processes::Live; nil where it is unknown, and in a file,
    # which has no contents.
    Snapshot = Struct.new(:process, :allocator, :malloc, :ruby, :sizes, :mappings, :regions,
                          :arenas, :ruby_pages, :problems, :reading, :objects, :gc, :vm,
                          :allocator_statistics, :environment, keyword_init: true) do
      # So that it can stand where a PackedSnapshot can.
      #
      # @return [Snapshot] itself
      def snapshot = self

      # @return [Integer]
      def pid = process.pid

      # @return [Time] when it was taken
      def time = Time.at(process.time)

      # @return [Integer] bytes of pages that no other process maps, dirty or clean
      def private_bytes = mappings.sum { |mapping| mapping.private_clean_bytes + mapping.private_dirty_bytes }

      # The kernel makes one mapping of neighbours, whoever asked for them. So where all of malloc's blocks are known,
      # or all of Ruby's pages (of a collector loaded as a library none may be), what lies beside them in the same
      # mapping is somebody else's. The heap by brk has no neighbours.
      #
      # @return [Boolean] whether what no region tells of in it belongs to none of the regions' owners
      def neighbour?(mapping)
        case mapping.use
        when "malloc" then mapping.path != "[heap]" && allocator.blocks? && arenas.none?(&:broken)
        when "ruby" then ruby&.pages.to_i.positive?
        else false
        end
      end

      # @return [String] the use of what no region tells of in it
      def rest_use(mapping) = neighbour?(mapping) ? "other" : mapping.use
    end
  end
end
