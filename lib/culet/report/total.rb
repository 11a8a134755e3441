# frozen_string_literal: true

require_relative "ledger"

module Culet
  module Report
    # Several processes together. What they share is in each one's resident bytes; their proportional sizes (PSS) share it
    # out, and can be added up.
    class Total
      # @param snapshots [Array<Scope::Snapshot>] of different processes
      def initialize(snapshots)
        @snapshots = snapshots
      end

      # @return [Hash{String => Object}]
      def to_h
        { "total_pss_bytes" => sum(&:pss_bytes), "total_private_dirty_bytes" => sum(&:private_dirty_bytes), "total_rss_bytes" => sum(&:rss_bytes),
          "total_levels" => levels }
      end

      # @return [String] one line
      def to_s
        format("%d processes together: %.1f MB (PSS), of which %.1f MB are written by one of them alone; the resident figures add up to %.1f MB, " \
               "because they count what is shared once in each\n", @snapshots.size, sum(&:pss_bytes) / 1e6, sum(&:private_dirty_bytes) / 1e6, sum(&:rss_bytes) / 1e6)
      end

      private

      def sum(&) = @snapshots.map(&:process).sum(&)

      # Resident bytes: what is shared counts in each.
      def levels
        @snapshots.map { |snapshot| Ledger.new(snapshot).levels }.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
      end
    end
  end
end
