# frozen_string_literal: true

module Culet
  module Report
    # The growth between two snapshots, of one process or of two.
    class Difference
      # A row of the comparison: a name, and its bytes before and after; nil: not present.
      Entry = Struct.new(:name, :before_bytes, :after_bytes, keyword_init: true) do
        # @return [Integer] negative when it shrank
        def grown_bytes = after_bytes.to_i - before_bytes.to_i

        # @return [Hash{String => Object}]
        def to_h
          { "name" => name, "before_bytes" => before_bytes, "after_bytes" => after_bytes,
            "grown_bytes" => grown_bytes }
        end
      end

      # @return [Scope::Snapshot] the earlier one
      attr_reader :before
      # @return [Scope::Snapshot] the later one
      attr_reader :after

      # @param before [Scope::Snapshot]
      # @param after [Scope::Snapshot]
      def initialize(before, after)
        @before = before
        @after = after
      end

      # @return [Boolean] whether both are of the same process, by number and program
      def same_process? = before.pid == after.pid && before.process.program == after.process.program

      # @return [Float] seconds between them
      def seconds = after.time - before.time

      # @return [Entry] all that is resident
      def total
        Entry.new(name: "resident", before_bytes: before.process.rss_bytes, after_bytes: after.process.rss_bytes)
      end

      # @return [Array<Entry>] by level, in the order of Levels; their growth adds up to the total's
      def levels = by_name([before, after].map { |snapshot| SnapshotLevels.new(snapshot).levels })

      # An arena is the same where it lies at the same address of the same process.
      #
      # @return [Array<Entry>] what each has from the system
      def arenas = arena_entries(&:system_bytes)

      # @return [Array<Entry>] what is in use in each arena, in the order of `arenas`
      def arenas_used = arena_entries(&:used_bytes)

      # @return [Array<Entry>] resident bytes of mappings by what they are called, the one that changed most first;
      #   without those that did not change
      def mappings
        sums = [before, after].map do |snapshot|
          snapshot.mappings.group_by { |mapping| SnapshotLevels.title(mapping) }
                  .transform_values { |list| list.sum(&:rss_bytes) }
        end
        by_name(sums).reject { |entry| entry.grown_bytes.zero? }
                     .sort_by { |entry| [-entry.grown_bytes.abs, entry.name] }
      end

      # @return [Array<Hash>] by slot size: slot_bytes, and before and after the live and the free slots
      def slots
        sides = [before, after].map { |snapshot| snapshot.ruby&.slots.to_a.to_h { |one| [one["slot_bytes"], one] } }
        sides.flat_map(&:keys).uniq.sort.map do |size|
          one, other = sides.map { |side| side.fetch(size, {}) }
          { "slot_bytes" => size, "before_live" => one["live"].to_i, "after_live" => other["live"].to_i,
            "before_free" => one["free"].to_i, "after_free" => other["free"].to_i }
        end
      end

      # Object counts of both processes; empty if one of them lacks counts.
      #
      # @return [Array<Entry>] bytes of malloc's that Ruby's objects hold, by type ("T_STRING"); the one that changed
      #   most first
      def holdings = by_type(&:malloc_bytes)

      # @return [Array<Entry>] counts instead of bytes, likewise
      def counts = by_type(&:count)

      # @return [Hash{String => Object}] all of it, for JSON
      def to_h
        { "before" => side(before), "after" => side(after), "seconds" => seconds, "rss" => total.to_h.except("name"),
          "levels" => levels.to_h { |entry| [entry.name, entry.to_h.except("name")] },
          "arenas" => arenas.zip(arenas_used).map { |system, used| arena(system, used) },
          "mappings" => mappings.map(&:to_h), "slots" => slots, "objects" => objects }
      end

      private

      def side(snapshot) = snapshot.process.to_h.slice("pid", "name", "title", "time", "rss_bytes", "pss_bytes")

      def arena(system, used)
        { "name" => system.name, "system" => system.to_h.except("name"), "used" => used.to_h.except("name") }
      end

      def arena_entries
        sides = [before, after].map do |snapshot|
          snapshot.arenas.to_h { |arena| [same_process? ? arena.address : arena.name, arena] }
        end
        sides.flat_map(&:keys).uniq.map do |key|
          one, other = sides.map { |side| side[key] }
          Entry.new(name: (other || one).name, before_bytes: one && yield(one), after_bytes: other && yield(other))
        end
      end

      # Type => the bytes its objects hold and how many there are, for JSON.
      def objects
        numbers = counts.to_h { |entry| [entry.name, entry] }
        holdings.to_h do |entry|
          [entry.name, { "malloc" => entry.to_h.except("name"), "count" => count(numbers.fetch(entry.name)) }]
        end
      end

      def count(entry)
        { "before" => entry.before_bytes.to_i, "after" => entry.after_bytes.to_i, "grown" => entry.grown_bytes }
      end

      def by_type
        sides = [before, after].map(&:objects)
        return [] unless sides.all? { |side| side&.counted? }

        values = sides.map { |side| side.types.to_h { |type| [type.name, yield(type)] } }
        by_name(values).sort_by { |entry| [-entry.grown_bytes.abs, entry.name] }
      end

      def by_name(sides)
        sides.flat_map(&:keys).uniq.map do |name|
          Entry.new(name: name, before_bytes: sides[0][name], after_bytes: sides[1][name])
        end
      end
    end
  end
end
