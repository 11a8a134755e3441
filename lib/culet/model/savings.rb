# frozen_string_literal: true

require_relative "gain"
require_relative "remedies"
require_relative "snapshot_levels"

module Culet
  # What the remedies of a setting would save in some processes.
  #
  # @api private
  class Savings
    # A process. levels: its bytes by level, without what it shares with its parent; unshared: those that it copied from
    # its parent since the fork, by level; nil where it was not forked.
    Part = Struct.new(:snapshot, :levels, :unshared, keyword_init: true) do
      # @param memory [SnapshotLevels]
      # @return [Part] of a process by itself
      def self.of(memory) = new(snapshot: memory.snapshot, levels: memory.levels)

      # @param names [Array<String>] of levels
      # @return [Integer] bytes
      def bytes(*names) = levels.values_at(*names).compact.sum

      # Of memory that is shared with the parent, a trim of the parent returns it.
      #
      # @return [Integer] resident bytes that `malloc_trim` would return now; 0 where that is unknown
      def trim_bytes
        return 0 unless snapshot.allocator.name == "glibc" && snapshot.malloc

        unshared ? [snapshot.malloc.trim_bytes, bytes("malloc_free")].min : snapshot.malloc.trim_bytes
      end

      # @return [Integer] free bytes in the arenas of glibc that a limit would not have made
      def arena_bytes
        return 0 unless snapshot.allocator.name == "glibc" && snapshot.malloc

        snapshot.arenas.drop(Thresholds::ARENAS).sum(&:free_bytes)
      end
    end

    # Which part of what a remedy could save it does save: expected, lowest, highest. Measured on the workloads of culet
    # compare and on Redmine (docs/decisions/explain.md).
    SHARES = { "allocator" => [1.0, 0.7, 1.15], "trim" => [0.85, 0.5, 1.0], "arenas" => [0.6, 0.3, 0.9],
               "warmup" => [0.5, 0.2, 0.8], "preload" => [0.8, 0.5, 1.0], "compact" => [0.6, 0.3, 0.9],
               "collector" => [0.7, 0.4, 1.0] }.freeze
    CERTAIN = [1.0, 1.0, 1.0].freeze
    # What a warm-up keeps workers from copying.
    COPIED = %w[ruby_objects ruby_free_slots malloc_used malloc_free].freeze
    private_constant :SHARES, :CERTAIN, :COPIED

    # @param parts [Array<Part>]
    # @param of [Integer] bytes of all these processes
    def initialize(parts, of:)
      @parts = parts
      @whole = of
    end

    # @param remedy [Remedy]
    # @param could [Integer, nil] bytes that it could save, where the levels do not tell
    # @return [Remedy] with what it saves; as it is, where that is unknown
    def predict(remedy, could = could_save(remedy.name))
      return remedy unless could

      values = SHARES.fetch(remedy.name, CERTAIN).map { |share| [(share * could).round, 0].max }
      remedy.dup.tap { |one| one.saves_bytes, one.low_bytes, one.high_bytes = values }
    end

    # @param remedy [Remedy] of `predict`
    # @return [Gain]
    def gain(remedy) = Gain.new(remedy.saves_bytes.to_i, of: @whole)

    # @param remedies [Array<Remedy>]
    # @return [Array<Remedy>] those that are worth the change, with what they save
    def worth(remedies) = remedies.map { |one| predict(one) }.select { |one| gain(one).worth? }

    private

    # @return [Integer, nil] bytes; nil where no level tells
    def could_save(name)
      case name
      when "allocator" then on_culet
      when "trim" then @parts.select { |one| Setup.of(one.snapshot).keeps_free_memory? }.sum(&:trim_bytes)
      when "arenas" then @parts.sum(&:arena_bytes)
      when "warmup" then copied(*COPIED)
      when "compact" then bytes("ruby_free_slots") - (Thresholds::SLOT_RESERVE * bytes("ruby_objects"))
      when "collector" then could_save("compact") if keeps_slots?
      end
    end

    # What is free is returned, and blocks that workers only freed stay shared.
    def on_culet
      bytes("malloc_free", "malloc_metadata") - (Thresholds::CULET_RESERVE * bytes("malloc_used")) +
        (Thresholds::CULET_SHARED * copied("malloc_used"))
    end

    def copied(*names) = @parts.filter_map(&:unshared).sum { |levels| levels.values_at(*names).compact.sum }

    def keeps_slots? = @parts.any? { |one| Setup.of(one.snapshot).collector.keeping_slots.any? }

    def bytes(*names) = @parts.sum { |one| one.bytes(*names) }
  end
end
