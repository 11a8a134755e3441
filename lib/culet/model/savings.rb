# frozen_string_literal: true

require_relative "gain"
require_relative "remedies"
require_relative "snapshot_levels"

module Culet
  # Predicts the savings of remedies by settings, in some processes.
  #
  # @api private
  class Savings
    # A process. levels: its bytes by level, without what it shares with its parent; unshared: those that it copied from
    # its parent since the fork, by level; nil where it was not forked; writes: what copied them (Cow::Writes); nil
    # where that is not known.
    Part = Struct.new(:snapshot, :levels, :unshared, :writes, keyword_init: true) do
      # @param memory [SnapshotLevels]
      # @return [Part] of a process by itself
      def self.of(memory) = new(snapshot: memory.snapshot, levels: memory.levels)

      # @param names [Array<String>] of levels
      def bytes(*names) = levels.values_at(*names).compact.sum

      # Memory shared with the parent is left out: a trim of the parent returns the pages that were free at
      # the fork and have not been used since.
      #
      # @return [Integer] resident bytes that `malloc_trim` would return now; 0 where that is unknown
      def trim_bytes
        malloc = snapshot.malloc
        return 0 unless snapshot.allocator.name == "glibc" && malloc

        shared = unshared ? malloc.free_resident_bytes - bytes("malloc_free") : 0
        [malloc.trim_bytes - shared, 0].max
      end

      # A Ruby that was built with -fstack-clash-protection touches all of its main thread's stack at the start. Forked
      # processes share it.
      #
      # @return [Integer] resident bytes of that stack beyond what programs use
      def stack_bytes
        stack = snapshot.mappings.find { |mapping| mapping.path == "[stack]" } unless unshared
        stack ? [stack.rss_bytes - Thresholds::STACK_RESERVE_BYTES, 0].max : 0
      end

      # @return [Float] resident free bytes in the arenas of glibc that a limit would not have made
      def arena_bytes = arena_share * bytes("malloc_free")

      # @return [Float] the part of all free bytes that is in these arenas
      def arena_share
        free = snapshot.allocator.name == "glibc" ? snapshot.arenas.map(&:free_bytes) : []
        free.sum.zero? ? 0.0 : free.drop(Thresholds::ARENAS).sum.fdiv(free.sum)
      end
    end

    # Which part of what a remedy could save it does save: expected, lowest, highest. Measured on the workloads of culet
    # compare and on Redmine (docs/decisions/explain.md).
    SHARES = { "allocator" => [1.0, 0.8, 1.1], "trim" => [1.0, 0.5, 1.0], "arenas" => [1.0, 0.7, 1.1],
               "preload" => [0.9, 0.5, 1.1], "compact" => [0.6, 0.3, 0.9],
               "collector" => [0.7, 0.4, 1.0] }.freeze
    # Share of the free memory that stays free, for processes with a single reading: expected, lowest, highest.
    FREE_ALONG = { "allocator" => [1.0, 0.8, 1.0], "trim" => [0.5, 0.0, 1.0], "arenas" => [0.6, 0.3, 1.0] }.freeze
    CERTAIN = [1.0, 1.0, 1.0].freeze
    # Levels that workers copy less of after a warm-up, and the avoidable part if the writes are unknown.
    COPIED = %w[ruby_objects ruby_free_slots malloc_used malloc_free].freeze
    AVOIDABLE = [0.42, 0.2, 0.7].freeze
    private_constant :SHARES, :FREE_ALONG, :CERTAIN, :COPIED, :AVOIDABLE

    # @param of [Integer] bytes of all these processes
    # @param watched [Hash{Diagnosis::Reuse => Part}] what some of them did over time, and each as it is at the end
    def initialize(parts, of:, watched: {})
      @parts = parts
      @whole = of
      @watched = watched
    end

    # @param bytes [Integer, nil] that it could save, where the levels do not tell
    # @return [Remedy] with what it saves; as it is, where that is unknown
    def predict(remedy, bytes = nil)
      could = bytes ? certain(bytes) : could_save(remedy.name)
      return remedy unless could

      values = could.zip(SHARES.fetch(remedy.name, CERTAIN)).map { |most, share| [(share * most).round, 0].max }
      remedy.dup.tap { |one| one.saves_bytes, one.low_bytes, one.high_bytes = values }
    end

    # @param remedy [Remedy] of `predict`
    def gain(remedy) = Gain.new(remedy.saves_bytes.to_i, of: @whole)

    # Predicts savings, and merges remedies of one line: their savings overlap, so the lower bound is the largest one.
    #
    # @param at_stake [Hash{String => Integer}] name => bytes that it could save, where the levels do not tell
    # @return [Array<Remedy>] with what they save
    def predict_all(remedies, at_stake = {})
      predicted = remedies.map { |one| predict(one, at_stake[one.name]) }
      predicted.group_by { |one| [one.line, one.file] }.values.map do |same|
        known = same.select(&:saves_bytes)
        known.size < 2 ? same.first : joined(known)
      end
    end

    # @return [Array<Remedy>] those that are worth the change, with what they save
    def worth(remedies) = predict_all(remedies).select { |one| gain(one).worth? }

    private

    def joined(same)
      same.max_by(&:saves_bytes).dup.tap do |one|
        one.text = same.map(&:text).join(", and ")
        one.low_bytes = same.map(&:low_bytes).max
        one.saves_bytes, one.high_bytes = %i[saves_bytes high_bytes].map { |name| same.sum(&name) }
      end
    end

    # @return [Array<Numeric>, nil] bytes: expected, lowest, highest; nil where no level tells
    def could_save(name)
      case name
      when "allocator" then on_culet
      when "trim" then trims
      when "arenas" then fewer_arenas
      when "warmup" then avoidable
      when "compact" then certain(bytes("ruby_free_slots") - (Thresholds::SLOT_RESERVE * bytes("ruby_objects")))
      when "collector" then could_save("compact") if keeps_slots?
      end
    end

    def certain(bytes) = [bytes] * 3

    # culet returns memory that is free for half a second to a second, and blocks that workers only free stay shared.
    def on_culet
      free = observed("allocator", ->(part) { part.bytes("malloc_free") }) { |reuse,| reuse.steady_bytes }
      shared = [Thresholds::CULET_SHARED * copied("malloc_used"), *scattered].min
      rest = bytes("malloc_metadata") + shared - (Thresholds::CULET_RESERVE * (bytes("malloc_used") - shared))
      free.map { |bytes| bytes + rest + stacks(@parts) }
    end

    # Blocks of one size lie together on culet, so that what a collection writes back as it was is on few pages.
    #
    # @return [Array<Numeric>, nil] bytes, at most: pages that workers copied for a few words of the allocator or the
    #   collector
    def scattered
      by_writes("malloc_used") do |writes|
        [writes.touched(:metadata) + (Thresholds::CULET_SHARED * writes.only(:same))]
      end
    end

    # A trim returns all whole pages that are free; those that are in use now and then come back. A parent of workers
    # rests. culet/auto returns the unused stack as well.
    def trims
      keeping = @parts.select { |part| Setup.of(part.snapshot).keeps_free_memory? }
      resting, working = keeping.partition { |part| part.unshared.nil? && @parts.any?(&:unshared) }
      working = observed("trim", :trim_bytes.to_proc, working) { |reuse,| reuse.trimmed_bytes }
      working.map { |bytes| bytes + resting.sum(&:trim_bytes) + stacks(keeping) }
    end

    def stacks(parts) = parts.sum(&:stack_bytes)

    # Threads of one arena use what another one has freed, so that it becomes as large as all need at once.
    def fewer_arenas
      observed("arenas", :arena_bytes.to_proc) do |reuse, part|
        most = part.arena_share * reuse.free_bytes
        least, most = [1 + (2 * Thresholds::ARENA_RESERVE), 1].map do |all|
          [most, reuse.resident_bytes - (all * reuse.peak_bytes)].min
        end
        between(least, most)
      end
    end

    # Applies the savings of the watched processes to all parts, in proportion to their memory at the end.
    #
    # @yieldreturn [Array<Numeric>] bytes that one of them would save: expected, lowest, highest
    # @return [Array<Numeric>] bytes: expected, lowest, highest
    def observed(name, could, parts = @parts)
      now = parts.sum(&could)
      all = @watched.values.sum(&could)
      return FREE_ALONG.fetch(name).map { |share| share * now } unless all.positive?

      watched = @watched.map { |reuse, part| yield(reuse, part).map { |bytes| now * bytes / all } }
      watched.transpose.map(&:sum)
    end

    # @return [Array<Numeric>] bytes: expected, lowest, highest
    def between(*bounds)
      low, high = bounds.map { |bytes| [bytes, 0].max }
      [(low + high) / 2, low, high]
    end

    def avoidable
      known = by_writes(*COPIED, &:avoidable_bytes)
      known ? between(*known) : AVOIDABLE.map { |share| share * copied(*COPIED) }
    end

    # @param names [Array<String>] levels
    # @yieldreturn [Array<Numeric>] bytes of one worker's writes
    # @return [Array<Numeric>, nil] those of all workers, by what they copied; nil where no writes are known
    def by_writes(*names)
      compared = @parts.select(&:writes)
      known = copied(*names, of: compared)
      return unless known.positive?

      compared.map { |part| yield part.writes }.transpose.map { |bytes| bytes.sum * copied(*names) / known }
    end

    def copied(*names, of: @parts)
      of.filter_map(&:unshared).sum { |levels| levels.values_at(*names).compact.sum }
    end

    def keeps_slots? = @parts.any? { |one| Setup.of(one.snapshot).collector.keeping_slots.any? }

    def bytes(*names) = @parts.sum { |one| one.bytes(*names) }
  end
end
