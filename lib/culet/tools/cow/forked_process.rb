# frozen_string_literal: true

require_relative "breakdown"

module Culet
  module Cow
    # One process of a process tree.
    #
    # age_seconds: since the fork; forked: whether it runs its parent's program at the same addresses, and so shares the
    # parent's memory; rss_bytes: nil where unknown; snapshot: nil for an unreadable process, with the reason in `why`.
    ForkedProcess = Struct.new(:pid, :parent_pid, :name, :age_seconds, :forked, :rss_bytes, :snapshot, :why,
                               keyword_init: true) do
      # @return [Breakdown, nil]
      attr_accessor :breakdown

      # @return [Writes, nil] writes to its unshared pages; nil without a comparison
      attr_accessor :writes

      # @return [Scope::Snapshot, nil] of the related process that it is compared with
      attr_accessor :relative

      # @return [Boolean] whether the process was readable
      def read? = !snapshot.nil?

      # @return [Integer, nil]
      def pss_bytes = snapshot&.process&.pss_bytes

      # @return [Integer, nil]
      def shared_bytes = snapshot&.process&.shared_bytes

      # @return [Integer, nil]
      def private_dirty_bytes = snapshot&.process&.private_dirty_bytes

      # @return [Array<Array(Integer, Integer)>] start and end of each range of unshared pages
      def unshared
        sharing = PageSharing.new(snapshot, relative: relative)
        sharing.to_enum.filter_map { |_, first, past, how| [first, past] if how == :unshared }
      end

      # @return [Integer, nil] bytes of pages that only this process maps, dirty or clean
      def private_bytes = snapshot&.private_bytes
    end
  end
end
