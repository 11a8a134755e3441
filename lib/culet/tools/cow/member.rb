# frozen_string_literal: true

require_relative "census"

module Culet
  module Cow
    # One process of a family.
    #
    # pid, parent_pid, name; age_seconds: since it was forked; forked: whether it runs what its parent runs, at the same
    # addresses, and so shares the parent's memory; rss_bytes: nil where even that is not to be had; snapshot: nil where the
    # process could not be read, `why` says why.
    Member = Struct.new(:pid, :parent_pid, :name, :age_seconds, :forked, :rss_bytes, :snapshot, :why, keyword_init: true) do
      # @return [Census, nil]
      attr_accessor :census

      # @return [Writes, nil] what was written to the pages that it stopped sharing; nil where that was not found out
      attr_accessor :writes

      # @return [Scope::Snapshot, nil] of the process that it is compared with
      attr_accessor :relative

      # @return [Boolean] whether there is more to say of it than its resident bytes
      def read? = !snapshot.nil?

      def pss_bytes = snapshot&.process&.pss_bytes

      def shared_bytes = snapshot&.process&.shared_bytes

      def private_dirty_bytes = snapshot&.process&.private_dirty_bytes

      # @return [Array<Array(Integer, Integer)>] addresses of the pages that it stopped sharing: first, past
      def unshared = Standing.new(snapshot, relative: relative).to_enum.filter_map { |_, first, past, how| [first, past] if how == :unshared }

      # @return [Integer, nil] bytes that would go back if it ended: mapped by it alone, written or not
      def private_bytes = snapshot&.mappings&.sum { |mapping| mapping.private_clean_bytes + mapping.private_dirty_bytes }
    end
  end
end
