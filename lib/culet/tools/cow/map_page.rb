# frozen_string_literal: true

require_relative "../map/html"
require_relative "history_chart"
require_relative "map_tables"

module Culet
  module Cow
    # The HTML page of a process tree: a map of each process, the parent first, with every page coloured by its sharing.
    class MapPage
      # Processes on the page.
      MOST = 12
      private_constant :MOST

      # @param tree [ProcessTree]
      # @param history [History, nil] drawn as a curve
      def initialize(tree, history: nil)
        @history = history
        parents, others = tree.read_members.partition { |member| !member.forked }
        losers = others.sort_by { |member| -member.breakdown.total.unshared }
        @members = [*parents.select { |parent| losers.any? { |member| member.parent_pid == parent.pid } }, *losers]
        @members = tree.read_members if @members.empty?
      end

      # @return [Array<String>] parts that the page omits
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
        @html ||= begin
          curve = (HistoryChart.new(@history).to_h if @history && @history.samples.size > 1)
          views = shown.map do |member|
            { unshared: member.unshared, caption: caption(member), tables: MapTables.new(member).to_a }
          end
          Map::Html.new(shown.map(&:snapshot), curve: curve, views: views)
        end
      end

      def caption(member)
        "process #{member.pid}, #{member.forked ? "forked by #{member.parent_pid}" : "the parent"}"
      end
    end
  end
end
