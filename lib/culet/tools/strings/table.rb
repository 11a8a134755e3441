# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "verdicts"

module Culet
  module Strings
    # The findings for a terminal.
    class Table
      TITLES = { "embedded" => "embedded in their slots", "own" => "a buffer of their own", "shared" => "in another's buffer",
                 "nofree" => "in a library, never freed" }.freeze
      # Lines of a table, unless more is asked for, and the longest name in one.
      LINES = 10
      NAME_COLUMNS = 60
      # Fewer strings in one buffer are the rule, and not worth a line.
      FEW = 5
      # Megabytes are told with two decimals.
      LEAST_BYTES = 5_000
      SMALL_BYTES = 100_000
      private_constant :LINES, :NAME_COLUMNS, :FEW, :LEAST_BYTES, :SMALL_BYTES

      # @param findings [Findings]
      # @param top [Integer, nil] how many groups, gems and files are shown, however little they would free; nil: LINES of
      #   those that matter
      # @param color [Boolean] whether to use ANSI colours
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(findings, top: nil, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @findings = findings
        @top = top || LINES
        @all = !top.nil?
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s = "#{[heading, verdicts, places, *(worth? || @all ? gains : hidden), notes].compact.join("\n\n")}\n"

      private

      attr_reader :findings

      def mega(bytes) = Text::Size.cell(bytes, digits: 2)

      def worth? = judgement.worth?

      def judgement = @judgement ||= Verdicts.new(findings)

      def heading
        [bold("#{Text::Lines.printable(findings.source.name)}: #{Text::Numbers.count(findings.strings, "string")} hold #{mega(findings.string_bytes)} MB"),
         "#{mega(findings.asked_bytes)} MB of that is text; #{mega(findings.duplicate_bytes)} MB are duplicates, " \
         "#{mega(findings.suffix_bytes)} MB more are ends of other strings"].join("\n")
      end

      def verdicts = Text::Lines.verdicts(judgement.list) { |topic| bold(topic) }

      def places
        rows = findings.places.map { |name, sum| [TITLES.fetch(name), sum] }
        rows.push(["all", all(findings.places.values)], ["of these: interned", findings.interned], ["frozen", findings.frozen],
                  ["others lie in it", findings.roots], ["content not known", findings.untold])
        Text::Table.render([["strings", rows.map(&:first), true], ["number", rows.map { |_, sum| Text::Numbers.grouped(sum.count) }, false],
                     ["text MB", rows.map { |_, sum| mega(sum.asked_bytes) }, false], ["held MB", rows.map { |_, sum| mega(sum.held_bytes) }, false],
                     ["slot slack MB", rows.map { |_, sum| mega(sum.slot_slack_bytes) }, false],
                     ["capacity slack MB", rows.map { |_, sum| mega(sum.capacity_slack_bytes) }, false]], unicode: @unicode)
      end

      def all(sums) = Findings::Sum.new(**Findings::Sum.members.to_h { |key| [key, sums.sum(&key)] })

      def gains = [duplicates, suffixes, remedies, *(sites if findings.sites?), roots].compact

      def duplicates
        list = findings.groups.select { |group| group.duplicate? && shows?(group) }.first(@top)
        return more(findings.duplicate_groups, findings.duplicate_bytes, "equal strings") if list.empty?

        [groups("equal strings", list, **sized(list)),
         more(findings.duplicate_groups - list.size, findings.duplicate_bytes - list.sum(&:gain_bytes), "equal strings")].compact.join("\n")
      end

      # They are many, and each frees little: what they come to together stands in the heading.
      def suffixes
        list = findings.groups.reject(&:duplicate?).first(@all ? @top : LINES / 2)
        return more(findings.suffix_groups, findings.suffix_bytes, "a string and its ends") if list.empty? || !(@all || findings.suffix_bytes >= LEAST_BYTES)

        [groups("others end like it", list, "the longest end" => ->(group) { Text::Lines.printable(group.parts.first.to_s(NAME_COLUMNS / 2)) },
                                            "would go bytes" => ->(group) { Text::Numbers.grouped(group.gain_bytes) }),
         more(findings.suffix_groups - list.size, findings.suffix_bytes - list.sum(&:gain_bytes), "a string and its ends")].compact.join("\n")
      end

      # Two columns, in kB where MB would be a column of zeros.
      def sized(list)
        unit, digits, size = list.map(&:held_bytes).max < SMALL_BYTES ? ["kB", 1, 1_000] : ["MB", 2, Text::Size::MEGABYTE]
        { "held #{unit}" => :held_bytes, "would go #{unit}" => :gain_bytes }.transform_values { |key| ->(one) { Text::Size.cell(one.public_send(key), digits: digits, unit: size) } }
      end

      # What is not shown is said, with its size and how to see it.
      def more(count, bytes, what)
        return unless count.positive?

        Text::Lines.wrap("#{Text::Numbers.count(count, "group")} of #{what} not shown, with #{Text::Size.human(bytes)} that would go away " \
                   "(--top #{[@top * 3, findings.group_count].min.clamp(1, 100_000)} shows more)", indent: 2)
      end

      def hidden
        [more(findings.duplicate_groups, findings.duplicate_bytes, "equal strings"),
         more(findings.suffix_groups, findings.suffix_bytes, "a string and its ends")].compact
      end

      def groups(title, list, columns)
        Text::Table.render([[title, list.map { |group| Text::Lines.printable(group.kept.to_s(NAME_COLUMNS - 20)) }, true],
                     ["number", list.map { |group| Text::Numbers.grouped(group.count) }, false],
                     *columns.map { |heading, figure| [heading, list.map(&figure), false] }], unicode: @unicode)
      end

      # One line for each remedy, however many of the groups told above it would help.
      def remedies
        list = findings.groups.select { |group| shows?(group) }.first(@top)
        list |= findings.groups.reject(&:duplicate?).first(1) if @all || findings.suffix_bytes >= LEAST_BYTES
        return if list.empty?

        list.group_by(&:remedy).map do |remedy, groups|
          kept = groups.first.kept.to_s(LINES)
          Text::Lines.wrap("#{bold(Text::Lines.printable(kept))}#{" and #{Text::Numbers.count(groups.size - 1, "more")[/.*more/]}" if groups.size > 1}: #{remedy}.", indent: 2)
        end.join("\n")
      end

      def sites
        { "by gem" => findings.gems, "by file" => findings.files }.filter_map do |title, all|
          list = all.select { |place| shows?(place) }.first(@top)
          next if list.empty?

          Text::Table.render([[title, list.map { |place| tail(Text::Lines.printable(place.name)) }, true], ["strings", list.map { |place| Text::Numbers.grouped(place.strings) }, false],
                       ["copies", list.map { |place| Text::Numbers.grouped(place.copies) }, false],
                       *sized(list).map { |heading, figure| [heading, list.map(&figure), false] }], unicode: @unicode)
        end
      end

      # What would be a line of zeros is none.
      def shows?(one) = @all ? one.gain_bytes.positive? : one.gain_bytes >= LEAST_BYTES

      # A path is told by its end.
      def tail(name) = name.size > NAME_COLUMNS ? "...#{name[-NAME_COLUMNS + 3..]}" : name

      def roots
        list = findings.shared_with.select { |root| root.count >= FEW && root.owner }.first(@top)
        return if list.empty?

        Text::Table.render([["shared already", list.map { |root| Text::Lines.printable(root.owner.to_s(NAME_COLUMNS - 20)) }, true],
                     ["strings in it", list.map { |root| Text::Numbers.grouped(root.count) }, false],
                     ["held MB", list.map { |root| mega(root.owner.held_bytes) }, false]], unicode: @unicode)
      end

      def notes = Text::Lines.notes([findings.source.note, *findings.source.problems].compact)

      def bold(text) = @color ? "\e[1m#{text}\e[0m" : text
    end
  end
end
