# frozen_string_literal: true

require_relative "../../../culet"
require_relative "page_sharing"
require_relative "writes"
require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../scope/mapping"

module Culet
  module Cow
    # Compares the contents of a process's unshared pages with the related process's pages at the same addresses. Both
    # keep running, so a change after the snapshots counts. The work is done in ext/culet/comparison.
    class Comparison
      # Bytes before a block's user data (glibc: malloc/malloc.c, "struct malloc_chunk").
      HEADERS = { "glibc" => 16 }.freeze
      # Ruby's type numbers (include/ruby/internal/value_type.h), then the holders that are no type
      # (ext/culet/comparison).
      HOLDERS = { 0x01 => "T_OBJECT", 0x02 => "T_CLASS", 0x03 => "T_MODULE", 0x04 => "T_FLOAT", 0x05 => "T_STRING",
                  0x06 => "T_REGEXP", 0x07 => "T_ARRAY", 0x08 => "T_HASH", 0x09 => "T_STRUCT", 0x0a => "T_BIGNUM",
                  0x0b => "T_FILE", 0x0c => "T_DATA", 0x0d => "T_MATCH", 0x0e => "T_COMPLEX", 0x0f => "T_RATIONAL",
                  0x14 => "T_SYMBOL", 0x1a => "T_IMEMO", 0x1b => "T_NODE", 0x1c => "T_ICLASS", 0x20 => "code",
                  0x21 => "collector", 0x22 => "none" }.freeze
      # Fields of an object's first word, in the order of ext/culet/comparison/writes.h. shape: the upper half, from
      # Ruby 3.2.
      FLAGS = %w[age frozen shape code_range other].freeze
      private_constant :HEADERS, :HOLDERS, :FLAGS

      # @param snapshot [Scope::Snapshot] read with blocks
      # @param relative [Scope::Snapshot] read with blocks
      # @param names [ClassNames, nil] of both processes
      def initialize(snapshot, relative, names: nil)
        @names = names
        @snapshot = snapshot
        @relative = relative
      end

      # @return [Writes]
      # @raise [Culet::Error] when a process has ended or is not readable, a snapshot is inconsistent, or the extension
      #   is missing
      def call
        raise Error, Native.missing_reason("culet.so") unless Culet.native?

        open(@snapshot) { |here| open(@relative) { |there| writes(*compare(here, there)) } }
      rescue ArgumentError => e
        raise Error, "the snapshot of process #{@snapshot.pid} or #{@relative.pid} is inconsistent: #{e.message}"
      end

      private

      # process_vm_readv pins pages, which unshares them in a forked process; a read of this file does not.
      #
      # @yieldparam memory [File] of the process
      def open(snapshot)
        memory = File.open("/proc/#{snapshot.pid}/mem", "rb")
      rescue *Processes::GONE_OR_FORBIDDEN
        raise Error, "the memory of process #{snapshot.pid} is no longer readable"
      else
        yield memory
      ensure
        memory&.close
      end

      def compare(here, there)
        PageComparison.call(side(@snapshot, here, @relative), side(@relative, there, @snapshot),
                            unshared.pack("Q*"), regions.pack("Q*"),
                            @snapshot.process.page_bytes, @names&.old_bits.to_i, !@names.nil?)
      end

      # Absent pages are not read, because a read would map them or swap them in.
      #
      # @param memory [File] of the same process
      # @return [Hash] a side of PageComparison
      def side(snapshot, memory, relative)
        pages = [*snapshot.ruby_pages, *emptied(snapshot, relative)].sort_by(&:address).flat_map do |page|
          [page.address, page.slot_bytes, page.first_slot, page.slots]
        end
        blocks = snapshot.regions.filter_map do |region|
          [region.start, region.end, region.chunks_payload] unless region.chunks_payload.empty?
        end
        present = PageRanges.of(snapshot) { |bits| Scope::Mapping.resident?(bits) }
        { memory: memory.fileno, present: present.flatten.pack("Q*"),
          header_bytes: HEADERS.fetch(snapshot.allocator.name, 0), blocks: blocks,
          ruby_page_bytes: snapshot.ruby&.page_bytes.to_i, ruby_pages: pages.pack("Q*") }
      end

      # The relative's pages whose slots are all gone here, because Ruby keeps the page for slots of any size.
      def emptied(snapshot, relative)
        own = snapshot.ruby_pages.to_h { |page| [page.address, page] }
        heap = snapshot.regions.select(&:ruby?)
        relative.ruby_pages.reject { |page| own.key?(page.address) }.select do |page|
          heap.bsearch { |region| region.end > page.address }&.then { |region| region.start <= page.address }
        end
      end

      def unshared = PageSharing.new(@snapshot, relative: @relative).unshared.flatten

      def regions
        @snapshot.regions.select(&:malloc?).flat_map do |region|
          [region.start, region.end, region.holds == "metadata" ? 1 : 0]
        end
      end

      def writes(masks, flags, holdings, classes)
        Writes.new.tap do |writes|
          masks.each { |mask, bytes| writes.add(mask, bytes) }
          FLAGS.zip(flags) { |name, count| writes.flags[name] = count if count.positive? }
          holdings.each { |holder, bytes| writes.hold(writes.holdings, HOLDERS.fetch(holder, "unknown"), bytes) }
          classes.each { |address, bytes| @names[address]&.then { |name| writes.hold(writes.classes, name, bytes) } }
        end
      end
    end
  end
end
