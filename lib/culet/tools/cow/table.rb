# frozen_string_literal: true

require_relative "../../text/view"
require_relative "labels"
require_relative "verdicts"
require_relative "writes_table"

module Culet
  module Cow
    # A process tree for a terminal.
    class Table < Text::View
      # Samples of a history that have a row.
      SAMPLES = 12
      private_constant :SAMPLES

      # @param history [History, nil] samples over time, which come first
      # @param options [Hash] as for Text::View
      def initialize(tree, history: nil, **options)
        super(tree, **options)
        @history = history
      end

      private

      def tree = @subject

      def workers = @workers ||= tree.workers

      def sections
        [over_time, heading, processes, regions, *WritesTable.new(tree, unicode: @unicode).tables, verdicts,
         note_lines(tree.problems)]
      end

      def verdicts = verdict_lines(Verdicts.new(tree).list)

      # Of many samples the first, the last, and evenly spaced ones between them.
      def over_time
        all = @history&.samples or return
        rows = all.size > SAMPLES ? Array.new(SAMPLES) { |at| all[at * (all.size - 1) / (SAMPLES - 1)] } : all
        grid([["after s", rows.map { |one| format("%.1f", one.at_seconds) }, false],
              ["processes", rows.map { |one| one.processes.size.to_s }, false],
              ["all (PSS) MB", rows.map { |one| mega(one.total_pss_bytes) }, false],
              ["worker shared MB", rows.map { |one| mega(one.worker_mean("shared_bytes")) }, false],
              ["worker private MB", rows.map { |one| mega(one.worker_mean("private_bytes")) }, false]])
      end

      def heading
        root = tree.members.first
        others = tree.members.size - 1
        more = " and #{count(others, "more process", "more processes")}" if others.positive?
        title = "#{printable(root.name)} (process #{root.pid})#{more}"
        size = tree.total_pss_bytes
        title << ": " << (size ? "#{mega(size)} MB" : "size unknown, because no process can be read")
        cost = tree.next_worker_bytes
        [bold(title), *("one more worker would cost about #{mega(cost)} MB" if cost)].join("\n")
      end

      def processes
        list = tree.members
        columns = { "RSS" => :rss_bytes, "PSS" => :pss_bytes, "shared" => :shared_bytes, "private" => :private_bytes,
                    "private dirty" => :private_dirty_bytes }
        megabytes = columns.map do |title, figure|
          ["#{title} MB", list.map { |one| mega(one.public_send(figure)) }, false]
        end
        grid([["process", list.map { |one| "#{one.pid} #{printable(one.name)}" }, true],
              ["role", list.map { |one| role(one) }, true], *megabytes])
      end

      def role(member)
        return "not readable" unless member.read?
        return "forked by #{member.parent_pid}" if member.forked

        tree.members.any? { |other| other.forked && other.parent_pid == member.pid } ? "parent" : "unrelated program"
      end

      def regions
        return if workers.empty?

        rows = sums
        columns = { "inherited" => :inherited, "still shared" => :shared, "unshared" => :unshared,
                    "added" => ->(one) { one.fresh + one.own } }
        cells = columns.map do |heading, figure|
          ["#{heading} MB", rows.map { |_, bytes| mega(figure.to_proc.call(bytes).fdiv(workers.size)) }, false]
        end
        grid([["average worker", rows.map(&:first), true], *cells,
              ["unshared %", rows.map { |_, bytes| unshared(bytes) }, false]])
      end

      # @return [Array<Array(String, SharingBytes)>] of all workers, by level, and of all levels
      def sums
        levels = workers.map { |worker| worker.breakdown.levels }
        found = levels.flat_map(&:keys).uniq.map do |name|
          [Levels::TITLES.fetch(name), levels.filter_map { |one| one[name] }.reduce(:+)]
        end
        [*found.sort_by { |_, bytes| -bytes.inherited }, ["all", found.map(&:last).reduce(:+)]]
      end

      def unshared(bytes) = bytes.inherited.zero? ? "-" : (100 * bytes.unshared.fdiv(bytes.inherited)).round.to_s
    end
  end
end
