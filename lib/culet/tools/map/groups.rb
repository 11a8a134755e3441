# frozen_string_literal: true

require_relative "span"

module Culet
  module Map
    # A part of the picture with a heading: Ruby's own pages, an arena, the mappings of one use.
    #
    # key: for the page's filters; title; arena: the Scope::ArenaPart, else nil; spans: Array of Span in address order.
    Group = Struct.new(:key, :title, :arena, :spans, keyword_init: true)

    # Puts all that a snapshot tells of into groups, in the order of the picture.
    class Groups
      # The uses of mappings in the order of the picture, with their headings.
      USES = { "malloc" => "Memory of the allocator, not told apart", "allocator" => "The allocator's own records",
               "stack" => "Stacks", "fiber" => "Fibers", "jit" => "Compiled code (JIT)", "library" => "Libraries",
               "file" => "Files", "kernel" => "The kernel's", "other" => "Other mappings" }.freeze

      # Of an allocator's address space, pages that are not in memory are shown, unless there are more than these in a
      # row: they are most of the truth about a heap. Of other mappings, only as many as keep neighbours apart.
      ABSENT_SHOWN = 65_536
      ABSENT_SHOWN_ELSEWHERE = 4

      # @param snapshot [Scope::Snapshot]
      # @param states [PageStates]
      def initialize(snapshot, states)
        @snapshot = snapshot
        @states = states
        @page_bytes = snapshot.process.page_bytes
      end

      # @return [Array<Group>] without those that would be empty
      def to_a
        rest = rests.group_by { |span| @snapshot.rest_use(span.mapping) }
        ruby = sorted(visible(ruby_spans, ABSENT_SHOWN_ELSEWHERE) + rest.fetch("ruby", []))
        groups = [Group.new(key: "ruby", title: "Ruby's own pages", spans: ruby), *arenas]
        groups.concat(USES.map { |use, title| Group.new(key: use, title: title, spans: rest.fetch(use, [])) })
        groups.concat(strangers(rest))
        groups.reject { |group| group.spans.empty? }
      end

      private

      # What lies in them is told apart as slots, or as bodies of young objects ("transient", up to Ruby 3.1).
      RUBY = %w[ruby transient].freeze
      private_constant :RUBY

      def ruby_regions = @snapshot.regions.select { |region| RUBY.include?(region.holds) }

      def ruby_spans = ruby_regions.map { |region| Span.of(region, @page_bytes) }

      # One for each arena; regions that name none, or one that is not told of, come after them.
      def arenas
        by_arena = (@snapshot.regions - ruby_regions).group_by(&:arena)
        known = @snapshot.arenas.map do |arena|
          Group.new(key: "arena-#{arena.id}", title: title(arena), arena: arena, spans: joined(by_arena.delete(arena.id)))
        end
        by_arena.empty? ? known : [*known, Group.new(key: "arena-none", title: strays(by_arena.values.flatten), spans: joined(by_arena.values.flatten))]
      end

      def strays(regions)
        regions.all? { |region| region.holds == "mmapped" } ? "Large blocks, each a mapping of its own" : "Memory of no arena"
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

      # Uses that a newer reader may tell of.
      def strangers(rest)
        (rest.keys - USES.keys - ["ruby"]).sort.map { |use| Group.new(key: "other-#{use}", title: "Other mappings: #{use}", spans: rest[use]) }
      end

      # What no region covers of the mappings, as far as it is in memory or swapped out.
      def rests
        covered = sorted(@snapshot.regions.map { |region| Span.of(region, @page_bytes) })
        @snapshot.mappings.flat_map { |mapping| visible(uncovered(mapping, covered), ABSENT_SHOWN_ELSEWHERE) }
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

      def visible(spans, absent) = spans.flat_map { |span| pieces(span, absent, dropped: true) }

      # A span without its longer stretches of absent pages.
      #
      # @param absent [Integer] as many pages in a row are shown
      # @param dropped [Boolean] whether a span that is not in memory at all is left out, with its ends
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

      def absent?(bits) = (bits & (Scope::Mapping::PRESENT | Scope::Mapping::SWAPPED)).zero? || bits & Scope::Mapping::ZERO != 0

      def cut(span, first, past)
        return span if first == span.first && past == span.past

        inside = span.regions.select { |region| region.end > first && region.start < past }
        Span.new(first: first, past: past, regions: inside, mapping: span.mapping)
      end
    end
  end
end
