# frozen_string_literal: true

require_relative "../../text/view"
require_relative "labels"
require_relative "verdicts"
require_relative "writes_table"

module Culet
  module Cow
    # A process tree for a terminal.
    class Table < Text::View
      # The size classes with a row of their own, besides memory that has no class.
      MOST_CLASSES = 12
      private_constant :MOST_CLASSES

      private

      def tree = @subject

      def workers = @workers ||= tree.workers

      def sections
        [heading, processes, regions, classes, slots, *WritesTable.new(tree, unicode: @unicode).tables, verdicts,
         note_lines(tree.problems)]
      end

      def verdicts = verdict_lines(Verdicts.new(tree).list)

      def mega(bytes) = Text::Size.cell(bytes)

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

        levels = workers.map do |worker|
          worker.breakdown.levels.transform_keys { |name| Levels::TITLES.fetch(name) }
        end
        table("average worker", levels, total: true)
      end

      def slots
        sizes = workers.flat_map { |worker| worker.breakdown.slots.keys }.uniq
        return if sizes.size < 2

        table("Ruby pages by slot size", workers.map { |worker| Labels.sizes(worker.breakdown.slots) })
      end

      # The largest classes only: an allocator has about a hundred.
      def classes
        all = workers.map { |worker| worker.breakdown.classes }.reject(&:empty?)
        return if all.empty?

        sums = all.reduce { |one, other| one.merge(other) { |_, bytes, more| bytes + more } }
        names = sums.sort_by { |_, bytes| -bytes.resident }.first(MOST_CLASSES).map(&:first)
        table("malloc by block size", all.map { |one| grouped(one, names) })
      end

      def grouped(classes, names)
        shown, rest = classes.partition { |name, _| names.include?(name) || name.is_a?(String) }
        rows = Labels.classes(shown.to_h)
        others = rest.group_by { |name, _| Labels.other_classes(name) }
        rows.merge(others.transform_values { |list| list.map(&:last).reduce(:+) })
      end

      # @param all [Array<Hash{String => SharingBytes}>] one for each worker
      def table(title, all, total: false)
        names = all.flat_map(&:keys).uniq
        rows = names.map { |name| [name, all.filter_map { |one| one[name] }.reduce(:+)] }
        rows = rows.sort_by { |_, bytes| -bytes.inherited } unless total && names.size < 2
        rows << ["all", rows.map(&:last).reduce(:+)] if total
        columns = { "inherited" => :inherited, "still shared" => :shared, "unshared" => :unshared,
                    "added" => ->(one) { one.fresh + one.own } }
        cells = columns.map do |heading, figure|
          ["#{heading} MB", rows.map { |_, bytes| mega(figure.to_proc.call(bytes).fdiv(all.size)) }, false]
        end
        grid([[title, rows.map(&:first), true], *cells,
              ["unshared %", rows.map { |_, bytes| unshared(bytes) }, false]])
      end

      def unshared(bytes) = bytes.inherited.zero? ? "-" : (100 * bytes.unshared.fdiv(bytes.inherited)).round.to_s
    end
  end
end
