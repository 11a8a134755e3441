# frozen_string_literal: true

require_relative "../../../lib/culet/text/view"
require_relative "../../../lib/culet/model/origin"

module Culet
  module Boot
    # The document, for a terminal: by gem, by file, or as a tree.
    class Table < Text::View
      # Sort orders: word of --sort => figure.
      ORDERS = { "self" => "self_seconds", "cpu" => "self_cpu_seconds", "total" => "total_seconds",
                 "objects" => "objects", "retained" => "retained_bytes", "mallocs" => "mallocs",
                 "malloc" => "malloc_bytes", "calls" => "syscalls", "failed" => "failed_syscalls",
                 "code" => "iseq_bytes" }.freeze
      # Heading, figure, unit.
      COLUMNS = [["self ms", "self_seconds", 1e-3], ["cpu ms", "self_cpu_seconds", 1e-3], ["objects", "objects", nil],
                 ["retained", "retained_objects", nil], ["retained kB", "retained_bytes", 1e3],
                 ["mallocs", "mallocs", nil], ["malloc kB", "malloc_bytes", 1e3], ["lookups", "syscalls", nil],
                 ["failed", "failed_syscalls", nil], ["code kB", "iseq_bytes", 1e3]].freeze
      TOTAL = ["total ms", "total_seconds", 1e-3].freeze
      # Branches below this part of the total time are omitted.
      LEAST = 0.005
      private_constant :TOTAL, :LEAST

      # @param document [Hash] of Document
      # @param order [String] a key of ORDERS
      # @param lines [Integer] rows of each list
      # @param tree [Boolean] whether to show the tree instead of the files
      # @param options [Hash] as for Text::View
      def initialize(document, order: "self", lines: 15, tree: false, **options)
        super(**options)
        @document = document
        @order = order
        @lines = lines
        @tree = tree
      end

      private

      attr_reader :document

      def sections = [heading, gems, @tree ? branches : files, errors, others, note_lines(document["problems"])]

      def features = document["features"]

      def heading
        loaded = features.count { |one| one["error"].nil? }
        repeats = features.sum { |one| one["repeats"] }
        command = printable(document["command"].join(" "))
        time = milliseconds(document["total_seconds"])
        lines = [bold("#{command}: #{count(loaded, "file")} required in #{time} ms#{whole}")]
        lines << "#{looks} #{code_words}".strip
        if repeats.positive?
          repeated = milliseconds(features.sum { |one| one["repeated_seconds"] })
          lines << "#{count(repeats, "require")} of loaded features took #{repeated} ms"
        end
        lines.reject(&:empty?).join("\n")
      end

      def whole = document["process_seconds"] ? " of #{milliseconds(document["process_seconds"])}" : ""

      def looks
        calls, failed = %w[syscalls failed_syscalls].map { |key| sum(key) }
        "#{number(calls)} file-system calls for lookups, #{number(failed)} of them failed;" if calls && failed
      end

      def code_words
        return "" if document["code"]["count"].zero?

        "#{size(document["code"]["iseq_bytes"])} of compiled code at the end"
      end

      def sum(key) = features.filter_map { |one| one[key] }.then { |list| list.sum unless list.empty? }

      def milliseconds(seconds) = Text::Numbers.significant(seconds * 1e3)

      # Gems require each other, so they have no total time.
      def gems
        by = @order == "total" ? "self" : @order
        list("gem", document["gems"], by) { |one| printable(one["gem"]) }
      end

      def files
        known = features.select { |one| one["path"] }
        list("file", known, @order, TOTAL) { |one| printable(Origin.short(one["path"], one["gem"])) }
      end

      def list(title, all, order, *more, &block)
        listed(title, all.sort_by { |one| -(one[ORDERS.fetch(order)] || 0) }, *more, &block)
      end

      # @yieldreturn [String] the name of a row
      def listed(title, all, *more, &block)
        shown = all.first(@lines)
        rest = "#{count(all.size - shown.size, title)} more not shown (--top)" if all.size > shown.size
        [table(title, shown.map(&block), shown, more), rest].compact.join("\n")
      end

      def table(title, names, rows, more)
        columns = [*more, *self.class::COLUMNS].select { |_, key,| rows.any? { |one| one[key] } }
        cells = columns.map { |heading, key, unit| [heading, rows.map { |one| cell(one[key], unit) }, false] }
        grid([[title, names, true], *cells])
      end

      def cell(value, unit)
        return "-" if value.nil?

        unit ? Text::Numbers.significant(value / unit.to_f) : number(value)
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

          rows << ["#{"  " * depth}#{printable(one["name"] || one["path"] || Feature::UNNAMED)}", one]
          grow(children, index, depth + 1, rows)
        end
      end

      def errors
        failed = features.select { |one| one["error"] }
        return if failed.empty?

        lines = failed.group_by { |one| [one["name"], one["error"]] }.first(@lines).map do |(name, error), list|
          time = milliseconds(list.sum { |one| one["total_seconds"] })
          "  #{printable(name)}: #{printable(error)}#{", #{list.size} times" if list.size > 1} (#{time} ms)"
        end
        "#{count(failed.size, "failed require")}:\n#{lines.join("\n")}"
      end

      def others
        list = document["processes"].reject { |one| one["features"].zero? }
        return if list.empty?

        shown = list.sort_by { |one| -one["total_seconds"] }.first(@lines).map do |one|
          time = milliseconds(one["total_seconds"])
          "  #{one["pid"]} #{printable(one["program"])}: #{count(one["features"], "file")} in #{time} ms"
        end
        "other processes:\n#{shown.join("\n")}"
      end
    end
  end
end
