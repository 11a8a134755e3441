# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Report
    # Several processes together. RSS counts shared pages in each process; PSS divides them, so that it can be added up.
    class Total
      # @param snapshots [Array<Scope::Snapshot>] of different processes
      def initialize(snapshots)
        @snapshots = snapshots
      end

      # @return [Hash{String => Object}] for JSON
      def to_h
        { "total_pss_bytes" => sum(&:pss_bytes), "total_private_dirty_bytes" => sum(&:private_dirty_bytes),
          "total_rss_bytes" => sum(&:rss_bytes),
          "total_levels" => levels }
      end

      # @return [String] one line
      def to_s
        "#{@snapshots.size} processes together: " \
          "#{bytes(&:pss_bytes)} PSS, of it #{bytes(&:private_dirty_bytes)} private and dirty; " \
          "RSS adds up to #{bytes(&:rss_bytes)}, because shared pages count in each process\n"
      end

      private

      def bytes(&) = Text::Size.human(sum(&))

      def sum(&) = @snapshots.map(&:process).sum(&)

      # Resident bytes; shared pages count in each process.
      def levels
        all = @snapshots.map { |snapshot| SnapshotLevels.new(snapshot).levels }
        all.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
      end
    end
  end
end
