# frozen_string_literal: true

require_relative "../../render/map/html"
require_relative "../../render/thinning"
require_relative "../../render/time_chart"
require_relative "history"
require_relative "../../model/levels"
require_relative "labels"

module Culet
  module Cow
    # One process's figures as the tables beside its map.
    class MapTables
      # An application has hundreds of classes.
      MOST_ROWS = 40
      private_constant :MOST_ROWS

      # @param member [ForkedProcess] that was read
      def initialize(member)
        @breakdown = member.breakdown
        @writes = member.writes
      end

      # @return [Array<Hash>] as Map::PageData takes them
      def to_a
        [categories, sharing, *(holdings if @writes)].compact
      end

      private

      def sharing
        levels = @breakdown.levels.sort_by { |_, one| -one.resident }
        return if levels.empty?

        rows = levels.map { |name, one| [Levels::TITLES.fetch(name), one.shared, one.unshared, one.fresh + one.own] }
        { "title" => "By use", "columns" => %w[shared unshared added], "rows" => rows }
      end

      def categories
        return unless @writes

        rows = Writes::CATEGORIES.select { |one| @writes.touched(one).positive? }
                                 .sort_by { |one| -@writes.touched(one) }
        { "title" => "Writes to unshared pages", "columns" => ["pages", "only cause"],
          "rows" => rows.map { |one| [Labels::WRITES.fetch(one), @writes.touched(one), @writes.only(one)] } }
      end

      def holdings
        tables = { "Objects on unshared pages" => @writes.holdings.transform_keys { |name| Labels.type(name) },
                   "By class" => @writes.classes }
        tables.reject { |_, all| all.empty? }.map do |title, all|
          largest = all.sort_by { |_, one| -one.bytes }.first(MOST_ROWS)
          { "title" => title, "columns" => %w[old young new malloc],
            "rows" => largest.map { |name, one| [name, one.old, one.young, one.made, one.malloc + one.malloc_made] } }
        end
      end
    end

    # A history as the chart of the map page: few curves, each with as many points as a small chart can show.
    class HistoryChart
      WORKERS = 4
      # Those of shared and private memory are near the colours of SHARINGS (sharing.js) for shared and unshared.
      COLOURS = %w[var(--ink) #56b4e9 #d55e00 #009e73 #cc79a7 #e69f00 #0072b2].freeze
      private_constant :WORKERS, :COLOURS

      # One curve. points: Array of seconds and bytes
      Line = Struct.new(:name, :colour, :points) do
        # @return [Integer] bytes at the end
        def last = points.last.last
      end

      # @param history [History] with at least two samples
      def initialize(history)
        @history = history
      end

      # @return [String]
      def title
        age = forked_before
        return "Memory over time" unless age

        order = age.negative? ? "after" : "before"
        "Sharing over time; the first fork was #{format("%.1f", age.abs)} s #{order} the first sample"
      end

      # @return [String]
      def svg
        points = lines.flat_map(&:points)
        chart = TimeChart.new(seconds: points.map(&:first).max.to_f, bytes: points.map(&:last).max.to_i,
                              width: 300, height: 136, text: 9)
        words = lines.map do |one|
          "#{one.name}: from #{[one.points.first.last, one.last].map { |bytes| Text::Size.human(bytes) }.join(" to ")}"
        end
        chart.svg(words.join("; "), lines.map do |one|
          %(<polyline points="#{chart.points(one.points)}" fill="none" stroke="#{one.colour}" stroke-width="1.5"/>)
        end)
      end

      # @return [Array<Line>]
      def lines
        @lines ||= figures.filter_map.with_index do |(name, value), index|
          points = Thinning.thin(@history.points(&value))
          Line.new(name, COLOURS[index], points) if points.size > 1
        end
      end

      private

      # Seconds from the first fork to the first sample.
      def forked_before
        ages = @history.samples.flat_map do |one|
          one.workers.filter_map { |worker| worker["age_seconds"]&.-(one.at_seconds) }
        end
        ages.max
      end

      # @return [Hash{String => Proc}] by name, of a sample
      def figures
        pids = @history.workers
        single = (pids.size > 1 ? pids.first(WORKERS) : []).to_h do |pid|
          ["process #{pid}, private", ->(one) { one.worker(pid)&.fetch("private_bytes") }]
        end
        { "all processes (PSS)" => :total_pss_bytes.to_proc,
          "average worker, shared" => ->(one) { one.worker_mean("shared_bytes")&.round },
          "average worker, private" => ->(one) { one.worker_mean("private_bytes")&.round }, **single }
      end
    end

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
          curve = (HistoryChart.new(@history) if @history && @history.samples.size > 1)
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
