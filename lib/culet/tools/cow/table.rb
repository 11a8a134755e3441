# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "labels"
require_relative "verdicts"
require_relative "written"

module Culet
  module Cow
    # A family for a terminal.
    class Table
      # So many of an allocator's size classes get a row of their own, and what is no size class.
      MOST_CLASSES = 12
      private_constant :MOST_CLASSES

      # @param family [Family]
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(family, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @family = family
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s = "#{[heading, processes, regions, classes, slots, *Written.new(family, unicode: @unicode).tables, verdicts, problems].compact.join("\n\n")}\n"

      private

      attr_reader :family

      def mega(bytes) = Text::Size.cell(bytes)

      def heading
        root = family.members.first
        title = "#{Text::Lines.printable(root.name)} (process #{root.pid})"
        others = family.members.size - 1
        title += " and #{Text::Numbers.count(others, "more process").sub(/ss(es|s)\z/, "sses")}" if others.positive?
        size = family.total_pss_bytes ? "#{mega(family.total_pss_bytes)} MB" : "what it costs is not known, since none of it may be read"
        lines = [bold("#{title}: #{size}")]
        lines << "one more worker would cost about #{mega(family.next_worker_bytes)} MB" if family.next_worker_bytes
        lines.join("\n")
      end

      def processes
        list = family.members
        Text::Table.render([["process", list.map { |one| "#{one.pid} #{Text::Lines.printable(one.name)}" }, true], ["is", list.map { |one| role(one) }, true],
                     *{ "RSS" => :rss_bytes, "PSS" => :pss_bytes, "shared" => :shared_bytes, "private" => :private_bytes, "written" => :private_dirty_bytes }
                       .map { |title, figure| ["#{title} MB", list.map { |one| mega(one.public_send(figure)) }, false] }], unicode: @unicode)
      end

      def role(member)
        return "not to be read" unless member.read?
        return "forked by #{member.parent_pid}" if member.forked

        family.members.any? { |other| other.forked && other.parent_pid == member.pid } ? "parent" : "a program of its own"
      end

      # What the workers inherited, and what of it each has made its own: on average, and level by level.
      def regions
        workers = family.workers
        return if workers.empty?

        table("a worker on average", workers.map { |worker| worker.census.levels.transform_keys { |name| Report::Ledger::TITLES.fetch(name) } }, total: true)
      end

      def slots
        workers = family.workers
        sizes = workers.flat_map { |worker| worker.census.slots.keys }.uniq
        return if sizes.size < 2

        table("Ruby's pages by slot", workers.map { |worker| Labels.sizes(worker.census.slots) })
      end

      # The classes with most of it: an allocator has a hundred of them.
      def classes
        workers = family.workers.map { |worker| worker.census.classes }.reject(&:empty?)
        return if workers.empty?

        sums = workers.reduce { |one, other| one.merge(other) { |_, shares, more| shares + more } }
        names = sums.sort_by { |_, shares| -shares.resident }.first(MOST_CLASSES).map(&:first)
        table("malloc's blocks of", workers.map { |classes| summed(classes, names) })
      end

      def summed(classes, names)
        shown, rest = classes.partition { |name, _| names.include?(name) || name.is_a?(String) }
        rows = Labels.classes(shown.to_h)
        rows.merge(rest.group_by { |name, _| Labels.other_classes(name) }.transform_values { |list| list.map(&:last).reduce(:+) })
      end

      # @param all [Array<Hash{String => Shares}>] one for each worker
      def table(title, all, total: false)
        names = all.flat_map(&:keys).uniq
        rows = names.map { |name| [name, all.filter_map { |shares| shares[name] }.reduce(:+)] }
        rows = rows.sort_by { |_, shares| -shares.inherited } unless total && names.size < 2
        rows << ["all", rows.map(&:last).reduce(:+)] if total
        columns = { "inherited" => :inherited, "still shared" => :shared, "its own by now" => :unshared, "added" => ->(one) { one.fresh + one.own } }
        Text::Table.render([[title, rows.map(&:first), true],
                     *columns.map { |heading, figure| ["#{heading} MB", rows.map { |_, shares| mega(figure.to_proc.call(shares).fdiv(all.size)) }, false] },
                     ["lost", rows.map { |_, shares| lost(shares) }, false]], unicode: @unicode)
      end

      def lost(shares) = shares.inherited.zero? ? "-" : "#{(100 * shares.unshared.fdiv(shares.inherited)).round} %"

      def verdicts = Text::Lines.verdicts(Verdicts.new(family).list) { |topic| bold(topic) }

      def problems = Text::Lines.notes(family.problems)

      def bold(text) = @color ? "\e[1m#{text}\e[0m" : text
    end
  end
end
