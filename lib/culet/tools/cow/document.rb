# frozen_string_literal: true

require_relative "verdicts"

module Culet
  module Cow
    # A process tree as a JSON object.
    class Document
      # @param tree [ProcessTree]
      # @param history [History, nil] samples over time
      def initialize(tree, history: nil)
        @tree = tree
        @history = history
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        { "processes" => @tree.members.map { |member| process(member) }, "total_pss_bytes" => @tree.total_pss_bytes,
          "total_rss_bytes" => @tree.total_rss_bytes, "next_worker_bytes" => @tree.next_worker_bytes,
          "verdicts" => Verdicts.new(@tree).list.map { |one| one.to_h.transform_keys(&:to_s) },
          "problems" => @tree.problems, **({ "samples" => @history.document } if @history).to_h }
      end

      private

      def process(member)
        about = { "pid" => member.pid, "parent_pid" => member.parent_pid, "name" => member.name,
                  "forked" => member.forked, "age_seconds" => member.age_seconds, "rss_bytes" => member.rss_bytes,
                  "pss_bytes" => member.pss_bytes, "shared_bytes" => member.shared_bytes,
                  "private_bytes" => member.private_bytes, "private_dirty_bytes" => member.private_dirty_bytes }
        return { **about, "regions" => {}, "why" => member.why } unless member.read?

        { **about, **member.breakdown.total.document.slice("unshared_bytes", "fresh_bytes"),
          "allocator" => member.snapshot.allocator.name,
          "regions" => member.breakdown.levels.transform_values(&:document), "writes" => member.writes&.document }
      end
    end
  end
end
