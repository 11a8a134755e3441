# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Map
    # A range of whole pages, from `first` up to `past`.
    #
    # regions: each Scope::Region in it, in address order; mapping: the Scope::Mapping of a span outside the regions,
    # else nil.
    Span = Struct.new(:first, :past, :regions, :mapping, keyword_init: true) do
      # @return [Span] all pages of the region
      def self.of(region, page_bytes)
        new(first: region.start / page_bytes * page_bytes, past: -(-region.end / page_bytes) * page_bytes,
            regions: [region])
      end

      # Each glibc heap has its own strip.
      #
      # @param other [Span] the next one
      # @return [Boolean] whether both form one strip
      def joins?(other) = other.first <= past && regions.last.holds != "heap" && other.regions.first.holds != "heap"

      # @param other [Span] the next one
      def +(other) = Span.new(first: first, past: [past, other.past].max, regions: regions + other.regions)
    end

    # A section of the map: Ruby pages, an arena, or the mappings of one use.
    #
    # key: for the page's filters; title; arena: the Scope::ArenaPart, else nil; spans: Array of Span in address order.
    Group = Struct.new(:key, :title, :arena, :spans, keyword_init: true) do
      # @param resident_bytes [Integer] of the group
      # @return [String] title and figures
      def heading(resident_bytes)
        parts = ["#{title}: #{Text::Size.human(resident_bytes)} resident"]
        parts << "#{Text::Size.human(arena.used_bytes)} in use, resident or not" if arena
        parts << "broken" if arena&.broken
        parts.join(", ")
      end
    end

    # Divides the memory of a snapshot into groups, in the order of the map.
    class Groups
      # Uses of mappings and their headings, in the order of the map.
      USES = { "malloc" => "Allocator memory, not walked", "allocator" => "Allocator metadata",
               "stack" => "Stacks", "fiber" => "Fibers", "jit" => "JIT code", "library" => "Libraries",
               "file" => "Files", "kernel" => "Kernel mappings", "other" => "Other mappings" }.freeze

      # Runs of absent pages up to this length are shown: an allocator has many of them, other mappings few.
      ABSENT_SHOWN = 65_536
      ABSENT_SHOWN_ELSEWHERE = 4

      # @param states [PageStates]
      def initialize(snapshot, states)
        @snapshot = snapshot
        @states = states
        @page_bytes = snapshot.process.page_bytes
      end

      # @return [Array<Group>] without empty ones
      def to_a
        rest = rests.group_by { |span| @snapshot.rest_use(span.mapping) }
        ruby = sorted(visible(ruby_spans) + rest.fetch("ruby", []))
        groups = [Group.new(key: "ruby", title: "Ruby pages", spans: ruby), *arenas]
        groups.concat(USES.map { |use, title| Group.new(key: use, title: title, spans: rest.fetch(use, [])) })
        groups.concat(unknown_uses(rest))
        groups.reject { |group| group.spans.empty? }
      end

      private

      # Regions with slots, and Ruby's transient heap (up to 3.1).
      RUBY = %w[ruby transient].freeze
      private_constant :RUBY

      def ruby_regions = @snapshot.regions.select { |region| RUBY.include?(region.holds) }

      def ruby_spans = ruby_regions.map { |region| Span.of(region, @page_bytes) }

      # A group for each arena; regions of no known arena come last.
      def arenas
        by_arena = (@snapshot.regions - ruby_regions).group_by(&:arena)
        known = @snapshot.arenas.map do |arena|
          spans = joined(by_arena.delete(arena.id))
          Group.new(key: "arena-#{arena.id}", title: title(arena), arena: arena, spans: spans)
        end
        return known if by_arena.empty?

        others = by_arena.values.flatten
        [*known, Group.new(key: "arena-none", title: regions_without_arena(others), spans: joined(others))]
      end

      def regions_without_arena(regions)
        regions.all? { |region| region.holds == "mmapped" } ? "Large blocks, one mapping each" : "Memory of no arena"
      end

      def title(arena)
        case arena.name
        when "main" then "Main arena"
        when "culet" then "culet's heap"
        else "Arena: #{arena.name}"
        end
      end

      def joined(regions)
        spans = Array(regions).sort_by(&:start).map { |region| Span.of(region, @page_bytes) }
        parts = spans.each_with_object([]) do |span, found|
          found.last&.joins?(span) ? found[-1] = found.last + span : found << span
        end
        parts.flat_map { |span| pieces(span, ABSENT_SHOWN) }
      end

      # Uses that a newer reader may report.
      def unknown_uses(rest)
        (rest.keys - USES.keys - ["ruby"]).sort.map do |use|
          Group.new(key: "other-#{use}", title: "Other mappings: #{use}", spans: rest[use])
        end
      end

      # Parts of mappings outside all regions, in memory or swapped out.
      def rests
        covered = sorted(@snapshot.regions.map { |region| Span.of(region, @page_bytes) })
        @snapshot.mappings.flat_map { |mapping| visible(uncovered(mapping, covered)) }
      end

      def uncovered(mapping, covered)
        at = mapping.start
        index = covered.bsearch_index { |span| span.past > mapping.start } || covered.size
        found = []
        while index < covered.size && covered[index].first < mapping.end
          found << rest(mapping, at, covered[index].first) if covered[index].first > at
          at = [at, covered[index].past].max
          index += 1
        end
        found << rest(mapping, at, mapping.end) if at < mapping.end
        found
      end

      def rest(mapping, first, past) = Span.new(first: first, past: past, regions: [], mapping: mapping)

      def sorted(spans) = spans.sort_by(&:first)

      def visible(spans) = spans.flat_map { |span| pieces(span, ABSENT_SHOWN_ELSEWHERE, dropped: true) }

      # Divides a span at its longer runs of absent pages.
      #
      # @param absent [Integer] longest run of absent pages that is shown
      # @param dropped [Boolean] whether absent pages at the ends are omitted
      def pieces(span, absent, dropped: false)
        found = []
        first = past = nil
        @states.each_run(span.first, span.past) do |at, pages, bits|
          stop = at + (pages * @page_bytes)
          next if absent?(bits) && (pages > absent || (dropped && (first.nil? || stop == span.past)))

          if past != at && first
            found << cut(span, first, past)
            first = nil
          end
          first ||= at
          past = stop
        end
        first ? found << cut(span, first, past) : found
      end

      def absent?(bits)
        (bits & (Scope::Mapping::PRESENT | Scope::Mapping::SWAPPED)).zero? || bits & Scope::Mapping::ZERO != 0
      end

      def cut(span, first, past)
        return span if first == span.first && past == span.past

        inside = span.regions.select { |region| region.end > first && region.start < past }
        Span.new(first: first, past: past, regions: inside, mapping: span.mapping)
      end
    end
  end
end
