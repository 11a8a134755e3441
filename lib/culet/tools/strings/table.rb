# frozen_string_literal: true

require_relative "../../text/view"
require_relative "verdicts"

module Culet
  module Strings
    # The findings, for a terminal.
    class Table < Text::View
      # Default rows of a table, and the longest name.
      LINES = 10
      NAME_COLUMNS = 60
      # Shared buffers with fewer strings are omitted.
      FEW = 5
      # Megabytes have two decimals.
      LEAST_BYTES = 5_000
      SMALL_BYTES = 100_000
      private_constant :LINES, :NAME_COLUMNS, :FEW, :LEAST_BYTES, :SMALL_BYTES

      # @param top [Integer, nil] number of groups, gems and files, however small; nil: LINES of the relevant ones
      # @param options [Hash] as for Text::View
      def initialize(findings, top: nil, **options)
        super(**options)
        @findings = findings
        @top = top || LINES
        @all = !top.nil?
      end

      private

      attr_reader :findings

      def sections
        [heading, verdict_lines(judgement.list), places, *(judgement.worth? || @all ? gains : hidden), notes]
      end

      def mega(bytes) = super(bytes, digits: 2)

      def judgement = @judgement ||= Verdicts.new(findings)

      def heading
        [bold("#{printable(findings.source.name)}: #{count(findings.strings, "string")}, " \
              "#{mega(findings.string_bytes)} MB"),
         "#{mega(findings.asked_bytes)} MB of text; #{mega(findings.duplicate_bytes)} MB of duplicates, " \
         "#{mega(findings.suffix_bytes)} MB of suffixes of other strings"].join("\n")
      end

      def places
        rows = findings.sums
        grid([["strings", rows.map(&:first), true],
              ["count", rows.map { |_, sum| number(sum.count) }, false],
              ["text MB", rows.map { |_, sum| mega(sum.asked_bytes) }, false],
              ["held MB", rows.map { |_, sum| mega(sum.held_bytes) }, false],
              ["slot slack MB", rows.map { |_, sum| mega(sum.slot_slack_bytes) }, false],
              ["capacity slack MB", rows.map { |_, sum| mega(sum.capacity_slack_bytes) }, false]])
      end

      def gains = [duplicates, suffixes, remedies, *(sites if findings.sites?), roots].compact

      def duplicates
        list = findings.groups.select { |group| group.duplicate? && shows?(group) }.first(@top)
        return more(findings.duplicate_groups, findings.duplicate_bytes, "equal strings") if list.empty?

        rest = findings.duplicate_bytes - list.sum(&:gain_bytes)
        [groups("equal strings", list, **sized(list)),
         more(findings.duplicate_groups - list.size, rest, "equal strings")].compact.join("\n")
      end

      # Suffixes are many and small: the heading has their sum.
      def suffixes
        list = findings.groups.reject(&:duplicate?).first(@all ? @top : LINES / 2)
        if list.empty? || !(@all || findings.suffix_bytes >= LEAST_BYTES)
          return more(findings.suffix_groups, findings.suffix_bytes, "strings with suffixes")
        end

        rest = findings.suffix_bytes - list.sum(&:gain_bytes)
        [groups("suffixes of", list,
                "longest suffix" => ->(group) { printable(group.parts.first.to_s(NAME_COLUMNS / 2)) },
                "savable bytes" => ->(group) { number(group.gain_bytes) }),
         more(findings.suffix_groups - list.size, rest, "strings with suffixes")].compact.join("\n")
      end

      # Two columns, in kB where MB would show zeros.
      def sized(list)
        small = list.map(&:held_bytes).max < SMALL_BYTES
        unit, digits, size = small ? ["kB", 1, 1_000] : ["MB", 2, Text::Size::MEGABYTE]
        { "held #{unit}" => :held_bytes, "savable #{unit}" => :gain_bytes }.transform_values do |key|
          ->(one) { Text::Size.cell(one.public_send(key), digits: digits, unit: size) }
        end
      end

      # The note about rows that are not shown.
      def more(number, bytes, what)
        return unless number.positive?

        wrap("#{count(number, "group")} of #{what} not shown, #{size(bytes)} savable " \
             "(--top #{[@top * 3, findings.group_count].min.clamp(1, 100_000)} shows more)", indent: 2)
      end

      def hidden
        [more(findings.duplicate_groups, findings.duplicate_bytes, "equal strings"),
         more(findings.suffix_groups, findings.suffix_bytes, "strings with suffixes")].compact
      end

      def groups(title, list, columns)
        grid([[title, list.map { |group| printable(group.kept.to_s(NAME_COLUMNS - 20)) }, true],
              ["count", list.map { |group| number(group.count) }, false],
              *columns.map { |heading, figure| [heading, list.map(&figure), false] }])
      end

      # One line for each remedy of the groups above.
      def remedies
        list = findings.groups.select { |group| shows?(group) }.first(@top)
        list |= findings.groups.reject(&:duplicate?).first(1) if @all || findings.suffix_bytes >= LEAST_BYTES
        return if list.empty?

        list.group_by(&:remedy).map do |remedy, groups|
          kept = groups.first.kept.to_s(LINES)
          more = " and #{count(groups.size - 1, "more")[/.*more/]}" if groups.size > 1
          wrap("#{bold(printable(kept))}#{more}: #{remedy}.", indent: 2)
        end.join("\n")
      end

      def sites
        { "by gem" => findings.gems, "by file" => findings.files }.filter_map do |title, all|
          list = all.select { |place| shows?(place) }.first(@top)
          next if list.empty?

          grid([[title, list.map { |place| Text::Table.cut(printable(place.name), NAME_COLUMNS, @unicode) }, true],
                ["strings", list.map { |place| number(place.strings) }, false],
                ["copies", list.map { |place| number(place.copies) }, false],
                *sized(list).map { |heading, figure| [heading, list.map(&figure), false] }])
        end
      end

      # Rows of zeros are omitted.
      def shows?(one) = @all ? one.gain_bytes.positive? : one.gain_bytes >= LEAST_BYTES

      def roots
        list = findings.shared_with.select { |root| root.count >= FEW && root.owner }.first(@top)
        return if list.empty?

        grid([["shared buffers", list.map { |root| printable(root.owner.to_s(NAME_COLUMNS - 20)) }, true],
              ["strings", list.map { |root| number(root.count) }, false],
              ["held MB", list.map { |root| mega(root.owner.held_bytes) }, false]])
      end

      def notes = note_lines([findings.source.note, *findings.source.problems].compact)
    end
  end
end
