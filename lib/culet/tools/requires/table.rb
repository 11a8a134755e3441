# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../../text/table"
require_relative "origin"

module Culet
  module Requires
    # A document for a terminal: by gem, by file, or as a tree.
    class Table

      # What the lists can be sorted by: word of --sort => the figure.
      ORDERS = { "self" => "self_seconds", "cpu" => "self_cpu_seconds", "total" => "total_seconds", "objects" => "objects", "retained" => "retained_bytes", "mallocs" => "mallocs",
                 "malloc" => "malloc_bytes", "calls" => "syscalls", "failed" => "failed_syscalls", "code" => "iseq_bytes" }.freeze
      # Heading, figure, what one unit of it is.
      COLUMNS = [["self ms", "self_seconds", 1e-3], ["cpu ms", "self_cpu_seconds", 1e-3], ["objects", "objects", nil], ["left", "retained_objects", nil], ["left kB", "retained_bytes", 1e3],
                 ["mallocs", "mallocs", nil], ["malloc kB", "malloc_bytes", 1e3], ["look-ups", "syscalls", nil], ["failed", "failed_syscalls", nil],
                 ["code kB", "iseq_bytes", 1e3]].freeze
      TOTAL = ["total ms", "total_seconds", 1e-3].freeze
      # A branch of the tree that took less than this part of the whole is summed up.
      LEAST = 0.005
      private_constant :COLUMNS, :TOTAL, :LEAST

      # @param document [Hash] of Document
      # @param order [String] a key of ORDERS
      # @param lines [Integer] how many of each list
      # @param tree [Boolean] whether the tree stands instead of the files
      # @param color [Boolean]
      # @param unicode [Boolean] whether lines beyond ASCII can be shown
      def initialize(document, order: "self", lines: 15, tree: false, color: false, unicode: Encoding.default_external == Encoding::UTF_8)
        @document = document
        @order = order
        @lines = lines
        @tree = tree
        @color = color
        @unicode = unicode
      end

      # @return [String]
      # @raise [Culet::Error] when the terminal-table gem is not installed
      def to_s = "#{[heading, gems, @tree ? branches : files, errors, others, notes].compact.join("\n\n")}\n"

      private

      attr_reader :document

      def features = document["features"]

      def heading
        loaded = features.count { |one| one["error"].nil? }
        repeats = features.sum { |one| one["repeats"] }
        lines = [bold("#{Text::Lines.printable(document["command"].join(" "))}: #{Text::Numbers.count(loaded, "file")} required in #{milliseconds(document["total_seconds"])} ms#{whole}")]
        lines << "#{looks} #{code_words}".strip
        lines << "#{Text::Numbers.count(repeats, "require")} of what was loaded already took #{milliseconds(features.sum { |one| one["repeated_seconds"] })} ms" if repeats.positive?
        lines.reject(&:empty?).join("\n")
      end

      def whole = document["process_seconds"] ? " of #{milliseconds(document["process_seconds"])}" : ""

      def looks
        calls = sum("syscalls") or return ""

        "#{Text::Numbers.grouped(calls)} file-system calls to find them, #{Text::Numbers.grouped(sum("failed_syscalls"))} of which failed;"
      end

      def code_words
        return "" if document["code"]["count"].zero?

        "#{Text::Size.human(document["code"]["iseq_bytes"])} of compiled code at the end"
      end

      def sum(key) = features.filter_map { |one| one[key] }.then { |list| list.sum unless list.empty? }

      def milliseconds(seconds) = Text::Numbers.significant(seconds * 1e3)

      # A list of gems has no total time: gems require each other.
      def gems
        by = @order == "total" ? "self" : @order
        list("gem", document["gems"], by) { |one| Text::Lines.printable(one["gem"]) }
      end

      def files = list("file", features.select { |one| one["path"] }, @order, TOTAL) { |one| Text::Lines.printable(Origin.short(one["path"], one["gem"])) }

      def list(title, all, order, *more)
        sorted = all.sort_by { |one| -(one[ORDERS.fetch(order)] || 0) }
        shown = sorted.first(@lines)
        rest = "#{Text::Numbers.count(sorted.size - shown.size, title)} more not shown (--top)" if sorted.size > shown.size
        [table(title, shown.map { |one| yield(one) }, shown, more), rest].compact.join("\n")
      end

      def table(title, names, rows, more)
        columns = [*more, *COLUMNS].select { |_, key,| rows.any? { |one| one[key] } }
        Text::Table.render([[title, names, true], *columns.map { |heading, key, unit| [heading, rows.map { |one| cell(one[key], unit) }, false] }], unicode: @unicode)
      end

      def cell(value, unit)
        return "-" if value.nil?

        unit ? Text::Numbers.significant(value / unit.to_f) : Text::Numbers.grouped(value)
      end

      def branches
        rows = []
        children = features.each_with_index.group_by { |one, _| one["parent"] }
        grow(children, nil, 0, rows)
        table("tree", rows.map(&:first), rows.map(&:last), [TOTAL])
      end

      def grow(children, number, depth, rows)
        (children[number] || []).each do |one, index|
          next if one["total_seconds"] < LEAST * document["total_seconds"]

          rows << ["#{"  " * depth}#{Text::Lines.printable(one["name"] || one["path"] || "?")}", one]
          grow(children, index, depth + 1, rows)
        end
      end

      def errors
        failed = features.select { |one| one["error"] }
        return if failed.empty?

        lines = failed.group_by { |one| [one["name"], one["error"]] }.first(@lines).map do |(name, error), list|
          "  #{Text::Lines.printable(name)}: #{Text::Lines.printable(error)}#{", #{list.size} times" if list.size > 1} (#{milliseconds(list.sum { |one| one["total_seconds"] })} ms)"
        end
        "#{Text::Numbers.count(failed.size, "require")} that failed:\n#{lines.join("\n")}"
      end

      def others
        list = document["processes"].reject { |one| one["features"].zero? }
        return if list.empty?

        shown = list.sort_by { |one| -one["total_seconds"] }.first(@lines).map do |one|
          "  #{one["pid"]} #{Text::Lines.printable(one["program"])}: #{Text::Numbers.count(one["features"], "file")} in #{milliseconds(one["total_seconds"])} ms"
        end
        "other processes:\n#{shown.join("\n")}"
      end

      def notes = Text::Lines.notes(document["problems"])

      def bold(text) = @color ? "\e[1m#{text}\e[0m" : text
    end
  end
end
