# frozen_string_literal: true

require_relative "verdicts"

module Culet
  module Cow
    # A family as one JSON object.
    class Document
      # @param family [Family]
      # @param history [History, nil] where it was looked at for a while
      def initialize(family, history: nil)
        @family = family
        @history = history
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        { "processes" => @family.members.map { |member| process(member) }, "total_pss_bytes" => @family.total_pss_bytes,
          "total_rss_bytes" => @family.total_rss_bytes, "next_worker_bytes" => @family.next_worker_bytes,
          "verdicts" => Verdicts.new(@family).list.map { |one| one.to_h.transform_keys(&:to_s) }, "problems" => @family.problems, **({ "samples" => @history.document } if @history).to_h }
      end

      private

      def process(member)
        about = { "pid" => member.pid, "parent_pid" => member.parent_pid, "name" => member.name, "forked" => member.forked, "age_seconds" => member.age_seconds,
                  "rss_bytes" => member.rss_bytes, "pss_bytes" => member.pss_bytes, "shared_bytes" => member.shared_bytes,
                  "private_bytes" => member.private_bytes, "private_dirty_bytes" => member.private_dirty_bytes }
        return { **about, "regions" => {}, "why" => member.why } unless member.read?

        { **about, **member.census.total.document.slice("unshared_bytes", "fresh_bytes"), "allocator" => member.snapshot.allocator.name,
          "regions" => named(member.census.levels), "arenas" => named(member.census.arenas), "slots" => named(member.census.slots), "size_classes" => named(member.census.classes), "writes" => member.writes&.document }
      end

      def named(shares) = shares.to_h { |name, one| [name.to_s, one.document] }
    end
  end
end
