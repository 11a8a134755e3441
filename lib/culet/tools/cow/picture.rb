# frozen_string_literal: true

require_relative "../map/html"
require_relative "chart"
require_relative "tallies"

module Culet
  module Cow
    # The loss over the map's drawing: a page on which one process after the other can be looked at, the parent first, each
    # page coloured by how it stands to the relative's.
    class Picture
      # More processes make a page that nobody looks through.
      MOST = 12
      private_constant :MOST

      # @param family [Family]
      # @param history [History, nil] where it was looked at for a while: drawn as a curve
      def initialize(family, history: nil)
        @history = history
        parents, others = family.read_members.partition { |member| !member.forked }
        losers = others.sort_by { |member| -member.census.total.unshared }
        @members = [*parents.select { |parent| losers.any? { |member| member.parent_pid == parent.pid } }, *losers]
        @members = family.read_members if @members.empty?
      end

      # @return [Array<String>] what the page leaves out, in words
      def left_out
        rest = @members.size - MOST
        [*("#{rest} of #{@members.size} processes" if rest.positive?), *html.left_out]
      end

      # @return [String] the page
      # @raise [Scope::Malformed] when a snapshot contradicts itself
      def to_s = html.to_s

      private

      def shown = @members.first(MOST)

      def html
        @html ||= Map::Html.new(shown.map(&:snapshot), curve: (Chart.new(@history).to_h if @history && @history.samples.size > 1),
                                                        views: shown.map { |member| { unshared: member.unshared, caption: caption(member), tables: Tallies.new(member).to_a } })
      end

      def caption(member)
        "process #{member.pid}, #{member.forked ? "forked by #{member.parent_pid}" : "the parent"}"
      end
    end
  end
end
