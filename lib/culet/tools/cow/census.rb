# frozen_string_literal: true

require_relative "../report/ledger"
require_relative "cursor"
require_relative "fill"
require_relative "shares"
require_relative "size_classes"
require_relative "standing"

module Culet
  module Cow
    # What a process shares and what it does not, by what the memory is used for. The kernel shares whole pages: a page of
    # which a tenth is in use counts with a tenth among what is in use, and with the rest among what is free.
    class Census
      # @param snapshot [Scope::Snapshot]
      # @param relative [Scope::Snapshot, nil] of the process it was forked from, or of one that it forked
      def initialize(snapshot, relative: nil)
        @snapshot = snapshot
        @ledger = Report::Ledger.new(snapshot)
        @levels = Report::Ledger::TITLES.keys.to_h { |name| [name, Shares.none] }
        @arenas = Hash.new { |shares, id| shares[id] = Shares.none }
        @slots = Hash.new { |shares, bytes| shares[bytes] = Shares.none }
        @classes = SizeClasses.new(snapshot.regions)
        @fills = {}
        count(Standing.new(snapshot, relative: relative))
      end

      # @return [Hash{String => Shares}] name as in Report::Ledger => its shares; without those of which nothing is resident
      def levels = @levels.reject { |_, shares| shares.resident.zero? }

      # @return [Hash{String => Shares}] by the name of malloc's arena; one that has no name is called "large blocks"
      def arenas
        names = @snapshot.arenas.to_h { |arena| [arena.id, arena.name] }
        @arenas.transform_keys { |id| names.fetch(id, "large blocks") }
      end

      # @return [Hash{Integer => Shares}] of Ruby's heap pages, by the bytes of their slots
      def slots = @slots.sort.to_h

      # @return [Hash{Integer, String => Shares}] of malloc's blocks, as SizeClasses has them
      def classes = @classes.to_h

      # @return [Shares] of the whole process
      def total = @levels.values.reduce(:+)

      private

      def count(standing)
        @regions = Cursor.new(@snapshot.regions)
        @pages = Cursor.new(pages)
        standing.each { |mapping, first, past, how| divide(mapping, first, past, how) }
      end

      # What lies in a region is the region's, the rest the mapping's.
      def divide(mapping, first, past, how)
        @regions.each(first, past) do |region, from, to|
          add(@ledger.level_of(mapping), how, from - first)
          in_region(region, from, to, how)
          first = to
        end
        add(@ledger.level_of(mapping), how, past - first)
      end

      def in_region(region, from, to, how)
        case region.holds
        when Scope::Region::RUBY then ruby(region, from, to, how)
        when Scope::Region::TRANSIENT then add("ruby_transient", how, to - from)
        else malloc(region, from, to, how)
        end
      end

      def ruby(region, from, to, how)
        live = used_bytes(region, from, to)
        add("ruby_objects", how, live)
        add("ruby_free_slots", how, to - from - live)
        @pages.each(from, to) { |page, first, past| @slots[page.slot_bytes].add(how, past - first) }
      end

      def malloc(region, from, to, how)
        @arenas[region.arena].add(how, to - from)
        @classes.add(from, to, how)
        return add("malloc_unsplit", how, to - from) unless @snapshot.allocator.blocks?
        return add("malloc_metadata", how, to - from) if region.holds == "metadata"

        used = used_bytes(region, from, to)
        add("malloc_used", how, used)
        add("malloc_free", how, to - from - used)
      end

      def used_bytes(region, from, to)
        fill = @fills[region.id] ||= Fill.new(region, page_bytes: @snapshot.process.page_bytes)
        fill.used_bytes(from, to).clamp(0, to - from)
      end

      def add(level, how, bytes) = @levels.fetch(level).add(how, bytes)

      # A heap page of Ruby's, as a stretch of addresses.
      Stretch = Struct.new(:start, :end, :slot_bytes)
      private_constant :Stretch

      def pages
        @snapshot.ruby_pages.map { |page| Stretch.new(page.address, page.address + @snapshot.ruby.page_bytes, page.slot_bytes) }.sort_by(&:start)
      end
    end
  end
end
