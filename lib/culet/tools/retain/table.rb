# frozen_string_literal: true

require_relative "../../text/view"
require_relative "../../model/retention/gems"
require_relative "figures"

module Culet
  module Retain
    # Retention of one process or dump, for a terminal.
    class Table < Text::View
      include Figures

      # Holders, sets, rows.
      TOP = 10
      SETS = 5
      # Rows of tables by class.
      ROWS = 20
      # Holders of an object.
      NAMED = 4
      # Characters of a String.
      CONTENT = 60
      # A part of all objects that the next collection frees, from which on it is worth a sentence.
      DEAD = 0.05
      private_constant :TOP, :SETS, :ROWS, :NAMED, :CONTENT, :DEAD

      # @param by [Symbol] :holder, :class or :gem
      # @param classes [Boolean] whether the instances of each class are listed, too
      # @param top [Integer, nil] lines of each list
      # @param options [Hash] as for Text::View
      def initialize(analysis, by: :holder, classes: false, top: nil, **options)
        super(**options)
        @analysis = analysis
        @by = by
        @classes = classes
        @top = top
      end

      private

      attr_reader :analysis

      def sections
        return [heading, selected, note_lines(notes)] if analysis.selected

        main = { holder: method(:holders), class: method(:by_class), gem: method(:by_gem) }.fetch(@by).call
        [heading, main, *(instances if @classes && @by != :class), duplicates, note_lines(notes)]
      end

      def total = analysis.total_bytes

      def heading
        [bold("#{printable(analysis.name)}: #{count(analysis.objects, "object")} retain #{size(total)}"),
         "#{size(analysis.slot_bytes)} in Ruby's slots, #{size(analysis.malloc_bytes)} of malloc"].join("\n")
      end

      def holders
        top = @top || TOP
        shown = analysis.holders.first(top)
        [*shown.each_with_index.map { |one, at| holder(one, at + 1) },
         rest(analysis.holders.drop(top), analysis.other_holders, "holder"), *sets]
      end

      def holder(one, rank)
        ["#{rank}. #{bold(size(one.bytes))} (#{percent(one.bytes, total)}), #{count(one.objects, "object")}: " \
         "#{bold(one.title)}", *below(classes(one.classes), one.path)].join("\n")
      end

      def sets
        shown = analysis.sets.first(@top || SETS)
        return [] if shown.empty?

        [wrap("Objects that no one holder keeps alone, by the holders that keep them together:"),
         *shown.each_with_index.map { |set, at| set(set, at + 1) },
         rest(analysis.sets.drop(shown.size), analysis.other_sets, "set")]
      end

      def set(set, rank)
        ["#{rank}. #{bold(size(set.bytes))} (#{percent(set.bytes, total)}), #{count(set.objects, "object")}: " \
         "#{bold("#{set.title} together")}; release from #{set.size == 2 ? "both" : "all"}",
         *below(classes(set.classes), *set.paths)].join("\n")
      end

      # @param listed [Array<#bytes>] those that the table leaves out
      # @param others [Retention::Analysis::Rest] those that the analysis leaves out
      def rest(listed, others, noun)
        number = listed.size + others.count
        return if number.zero?

        bytes = listed.sum(&:bytes) + others.bytes
        "#{count(number, "more #{noun}")}: #{size(bytes)} (#{percent(bytes, total)})"
      end

      def by_class
        kept = keepers_of_classes
        shown = analysis.classes.first(@top || ROWS)
        grid([["class", shown.map { |one| name(one.name) }, true], *figures(shown),
              ["kept by", shown.map { |one| kept.fetch(one.name, "") }, true]])
      end

      # @return [Hash{String => String}] for each class the holder or set that keeps most of its bytes
      def keepers_of_classes
        found = {}
        [*analysis.holders, *analysis.sets].each do |one|
          one.classes.each do |instances|
            best = found[instances.name]
            found[instances.name] = [instances.bytes, one] if best.nil? || best.first < instances.bytes
          end
        end
        found.transform_values { |bytes, one| "#{printable(one.title)} #{size(bytes)}" }
      end

      def by_gem
        shown = Retention::Gems.new(analysis).rows.first(@top || ROWS)
        grid([["gem of the holders", shown.map { |row| printable(row.name) }, true], *figures(shown),
              ["holders", shown.map { |row| number(row.holders) }, false]])
      end

      def figures(rows)
        [["retained", rows.map { |row| size(row.bytes) }, false],
         ["share", rows.map { |row| percent(row.bytes, total) }, false],
         ["objects", rows.map { |row| number(row.objects) }, false]]
      end

      def instances
        shown = analysis.classes.max_by(@top || ROWS, &:objects)
        grid([["class", shown.map { |one| name(one.name) }, true],
              ["instances", shown.map { |one| number(one.objects) }, false],
              ["bytes", shown.map { |one| size(one.bytes) }, false]])
      end

      def selected
        one = analysis.selected
        one.is_a?(Retention::Analysis::OfObject) ? object(one) : of_class(one)
      end

      def object(one)
        [wrap("#{printable(one.address)} is a #{name(one.name)} of #{size(one.bytes)}; #{size(one.retained_bytes)} " \
              "would be free without it. #{kept_by(one.keepers)}"), paths(one.paths)]
      end

      def kept_by(keepers)
        return "No named holder keeps it." if keepers.empty?

        names = keepers.first(NAMED).map { |one| printable(one.title) }
        names << "others" if keepers.size > NAMED
        "It is kept by #{Text::Lines.list(names)}."
      end

      def of_class(one)
        return wrap("There is no instance of #{name(one.name)} that anything keeps.") if one.objects.zero?

        shown = one.keepers.first(@top || TOP)
        [wrap("#{bold(name(one.name))}: #{count(one.objects, "instance")}, #{size(one.bytes)}"),
         *(kept_table(shown) if shown.any?), paths(one.paths)]
      end

      def kept_table(shown)
        grid([["kept by", shown.map { |kept| printable(kept.keeper.title) }, true],
              ["instances", shown.map { |kept| number(kept.objects) }, false],
              ["bytes", shown.map { |kept| size(kept.bytes) }, false]])
      end

      def paths(list)
        lines = below(*list)
        lines.join("\n") if lines.any?
      end

      def duplicates
        all = analysis.duplicates or return
        shown = all.first(@top || TOP)
        return "No String is there twice." if shown.empty?

        grid([["equal Strings", shown.map { |one| content(one) }, true],
              ["copies", shown.map { |one| number(one.copies) }, false],
              ["bytes", shown.map { |one| size(one.bytes) }, false],
              ["kept by", shown.map { |one| Text::Lines.list(one.keepers.first(2).map(&:title)) }, true]])
      end

      def content(one)
        return "of #{count(one.length, "byte")}" unless one.content

        text = printable(one.content.inspect)
        text.size > CONTENT ? "#{text[0, CONTENT - 4]}...\"" : text
      end

      def notes = [cost, dead, stacks].compact

      def cost
        if analysis.dump?
          return "The dump took #{seconds(analysis.cpu_seconds)} of CPU and #{size(analysis.peak_bytes)} to analyse."
        end

        "The process stood still for #{milliseconds(analysis.fork_seconds)}, while it was forked; the walk took " \
          "#{seconds(analysis.cpu_seconds)} of CPU and #{size(analysis.peak_bytes)} in the copy."
      end

      def seconds(value) = "#{Text::Numbers.significant(value)} s"

      def milliseconds(value) = "#{Text::Numbers.significant(1000 * value)} ms"

      def dead
        return if analysis.unreachable_objects <= DEAD * analysis.objects

        "#{count(analysis.unreachable_objects,
                 "object")} beside these, #{size(analysis.unreachable_bytes)}, are kept " \
          "by nothing: the next major collection frees them."
      end

      def stacks
        return unless @by == :holder && analysis.selected.nil? &&
                      analysis.holders.first(@top || TOP).any?(&:stale?)

        "What a stack keeps may be left over from a call that has returned; a second look shows what lasts."
      end
    end
  end
end
