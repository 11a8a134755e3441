# frozen_string_literal: true

require_relative "../../text/size"
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
        "#{@snapshots.size} processes together: #{bytes(&:pss_bytes)} (PSS), of which #{bytes(&:private_dirty_bytes)} are written by one of " \
          "them alone; the resident figures add up to #{bytes(&:rss_bytes)}, because they count what is shared once in each\n"
      end

      private

      def bytes(&) = Text::Size.human(sum(&))

      def sum(&) = @snapshots.map(&:process).sum(&)

      # Resident bytes: what is shared counts in each.
      def levels
        @snapshots.map { |snapshot| Ledger.new(snapshot).levels }.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
      end
    end
  end
end
