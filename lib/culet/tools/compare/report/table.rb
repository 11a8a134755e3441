# frozen_string_literal: true

require_relative "../../../text/lines"
require_relative "../../../text/numbers"
require_relative "../../../text/table"
require_relative "findings"

module Culet
  module Compare
    module Report
      # The comparison as one table per workload, for a terminal.
      class Table
        MINIMUM_WIDTH = 40

        # A column: its heading, a long and a short cell per candidate, and how
        # soon it is shortened and left out when the terminal is narrow.
        Column = Struct.new(:heading, :cells, :short, :short_heading, :keep, :left, :best, keyword_init: true)

        # How long each figure is kept when columns must go; the greater, the longer.
        KEEP = { "peak_rss_bytes" => 9, "mean_rss_bytes" => 6, "end_rss_bytes" => 6.2, "peak_pss_bytes" => 4, "mean_pss_bytes" => 1,
                 "loaded_rss_bytes" => 0.5, "loaded_pss_bytes" => 6.5, "end_pss_bytes" => 3.5, "cpu_seconds" => 7,
                 "wall_seconds" => 3, "requests_per_second" => 8, "cpu_per_request_seconds" => 7.5, "p50_seconds" => 2, "p99_seconds" => 5 }.freeze

        BOLD_GREEN = "\e[1;32m"
        BOLD = "\e[1m"
        DIM = "\e[2m"
        RESET = "\e[0m"

        # @param document [Hash] the result document of a comparison
        # @param color [Boolean] whether to use ANSI colours
        # @param width [Integer, nil] columns of the terminal; 80 when unknown
        # @param unicode [Boolean] whether lines and dashes beyond ASCII can be shown
        def initialize(document, color: false, width: 80, unicode: Encoding.default_external == Encoding::UTF_8)
          @model = Model.new(document)
          @findings = Findings.new(@model)
          @color = color
          @width = [width || 80, MINIMUM_WIDTH].max
          @unicode = unicode
        end

        # @return [String] the tables, the candidates left out, and what the figures mean
        # @raise [Culet::Error] when the terminal-table gem is not installed
        def to_s
          parts = [*model.workloads.map { |workload| section(workload) }, general_exclusions, note].compact
          parts.unshift(wrap(findings.interruption)) unless model.complete?
          parts.unshift(wrap(findings.lead.first)) if model.workloads.none? { |workload| workload.candidates.any? }
          text = "#{parts.join("\n\n")}\n"
          unicode ? text : text.tr("–…µ", "-.u")
        end

        private

        attr_reader :model, :findings, :color, :width, :unicode

        def section(workload)
          lines = [paint(fit(workload.name, width), BOLD)]
          lines << (workload.candidates.any? ? fitted(columns(workload)) : "No candidate completed a run.")
          lines.concat(ratios(workload))
          lines.concat(exclusion_lines(workload.exclusions))
          lines.join("\n")
        end

        def fitted(columns)
          narrowed = narrowings(columns).find { |attempt| widest(render(attempt)) <= width }
          render(narrowed || narrowings(columns).to_a.last)
        end

        # From everything in full to what is indispensable: figures lose their
        # intervals, the least important first, then columns go, then the last
        # intervals, then names are cut.
        def narrowings(columns)
          return enum_for(:narrowings, columns) unless block_given?

          yield columns
          figures = columns.select(&:keep).sort_by(&:keep)
          lesser = figures[0...-1]
          lesser.each { |column| yield columns = columns.map { |one| one == column ? shortened(one) : one } }
          lesser.each { |column| yield columns = columns.reject { |one| one.keep == column.keep } }
          yield columns = columns.map { |one| one.keep ? shortened(one) : one }
          yield columns = columns.map { |one| shortened(one) }
          30.downto(3) { |size| yield [cut(columns.first, size), *columns.drop(1)] }
        end

        def shortened(column) = column.dup.tap { |one| one.cells, one.heading = column.short, column.short_heading || column.heading }

        def cut(column, size) = column.dup.tap { |one| one.cells = column.cells.map { |cell| fit(cell, size) } }

        def columns(workload)
          [names_column(workload.candidates),
           *workload.metrics.map { |metric| figure_column(workload, metric) },
           (verdict_column(workload) if workload.baseline)].compact
        end

        def names_column(candidates, heading = "allocator")
          names = candidates.map(&:allocator)
          Column.new(heading: heading, cells: names, short: names, left: true, best: [])
        end

        def figure_column(workload, metric)
          symbol, size = workload.unit(metric)
          long, short = %i[long short].map do |form|
            workload.candidates.map { |candidate| figure(candidate, metric, size, form) }
          end
          heading = metric.kind == :rate ? "#{metric.short}#{symbol}" : "#{metric.short} #{symbol}"
          Column.new(heading: heading, cells: long, short: short, short_heading: heading.sub("peak RSS", "peak"), keep: KEEP.fetch(metric.key),
                     best: workload.best(metric).map { |candidate| workload.candidates.index(candidate) })
        end

        def figure(candidate, metric, size, form)
          median = candidate.median(metric)
          return "-" unless median

          bounds = form == :long ? candidate.bounds(metric) : nil
          Text::Numbers.interval(median / size, *bounds&.map { |bound| bound / size })
        end

        def verdict_column(workload)
          long = workload.candidates.map { |candidate| peak_verdict(workload, candidate) }
          short = long.map { |text| text.sub(/ \([^)]*\)\z/, "").sub(/no difference shown by .*:/, "none shown:") }
          Column.new(heading: "peak RSS / #{workload.baseline}", cells: long, short: short, short_heading: "/ #{workload.baseline}", left: true, best: [])
        end

        def peak_verdict(workload, candidate)
          return "baseline" if candidate.allocator == workload.baseline

          comparison = candidate.comparison(Findings::PEAK)
          words = findings.verdict(comparison)
          comparison && !findings.difference?(comparison) ? "#{words}: #{findings.point(comparison)}" : words
        end

        def render(columns)
          Text::Table.render(columns.map { |column| [column.heading, painted(column), column.left] }, unicode: unicode, width: nil)
        end

        def painted(column)
          column.cells.each_with_index.map { |cell, index| column.best.include?(index) ? paint(cell, BOLD_GREEN) : cell }
        end

        # What the paired runs show beyond the peak, one ratio per quantity.
        def ratios(workload)
          metrics = workload.metrics - [Findings::PEAK]
          compared = workload.candidates.select { |candidate| metrics.any? { |metric| candidate.comparison(metric) } }
          return [] if compared.empty?

          metrics = metrics.select { |metric| compared.any? { |candidate| candidate.comparison(metric) } }
          undecided = metrics.none? { |metric| compared.any? { |candidate| findings.difference?(candidate.comparison(metric)) } }
          return ["", wrap("No difference to #{workload.baseline} shown in #{Text::Lines.list(metrics.map(&:title))}.")] if undecided

          columns = metrics.map { |metric| ratio_column(compared, metric) }
          ["", fitted([names_column(compared, "ratio to #{workload.baseline}"), *columns])]
        end

        def ratio_column(candidates, metric)
          cells = candidates.map do |candidate|
            comparison = candidate.comparison(metric)
            findings.difference?(comparison) ? findings.point(comparison) : "-"
          end
          Column.new(heading: "#{metric.short}#{"/s" if metric.kind == :rate}", cells: cells, short: cells, keep: KEEP.fetch(metric.key), best: [])
        end

        def exclusion_lines(exclusions)
          exclusions.map do |entry|
            run = entry["run"] ? ", run #{entry["run"]}" : ""
            wrap("left out: #{entry["allocator"]}#{run}: #{model.exclusion_sentence(entry)}", indent: 2)
          end
        end

        def general_exclusions
          lines = exclusion_lines(model.exclusions.reject { |entry| entry["workload"] })
          lines.join("\n") unless lines.empty?
        end

        def note
          measured = model.workloads.select { |workload| workload.candidates.any? }
          return if measured.empty?

          text = +"RSS is that of the whole process tree, sampled while it ran (pages shared by processes count in each; " \
                  "PSS shares them out). MB = 1,000,000 bytes. #{[findings.left_sentence, findings.runs_sentence].compact.join(" ")}"
          text << " Behind medians and ratios: 95 % bootstrap intervals." if measured.any? { |workload| workload.run_counts.max > 1 }
          text << " Ratios to #{model.baseline} are paired run by run; \"-\" stands where no difference is shown." if model.baseline
          paint(wrap(text), DIM)
        end

        def paint(text, code) = color && !text.empty? ? "#{code}#{text}#{RESET}" : text

        def fit(text, size) = text.length > size ? "#{text[0, size - 1]}…" : text

        def widest(text)
          text.lines.map { |line| display_width(line.chomp) }.max.to_i
        end

        # terminal-table brings unicode-display_width, which it pads by as well.
        def display_width(line) = Unicode::DisplayWidth.of(line.gsub(/\e\[[0-9;]*m/, ""))

        def wrap(text, indent: 0)
          lines = text.split.each_with_object([+""]) do |word, all|
            all << (+" " * indent) if !all.last.strip.empty? && all.last.length + 1 + word.length > width
            all.last << (all.last.strip.empty? ? word : " #{word}")
          end
          lines.join("\n")
        end
      end
    end
  end
end
