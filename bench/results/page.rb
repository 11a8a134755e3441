# frozen_string_literal: true

require_relative "chart"
require_relative "families"
require_relative "goals"
require_relative "result_file"
require_relative "table"

module Bench
  # docs/benchmarks.md, its charts and the README's.
  class Page
    PAGE = File.join(ROOT, "docs/benchmarks.md")
    README_CHART = File.join(ROOT, "docs/images/memory.svg")
    HEAD = <<~MARKDOWN
      # Benchmarks

      <!-- Written by bench/report from docs/benchmarks/*.json. Do not edit. -->

      Figures are medians; in parentheses 95 % bootstrap intervals, unless a remark says otherwise. The best figure of a
      line is bold. The machines were virtual, with 2 processors, and ran other work unless the
      [list of result files](#result-files) says otherwise: compare ratios. Memory figures repeat well; CPU times repeat
      within 10 to 20 %. `glibc:arena_max=2` is glibc with `MALLOC_ARENA_MAX=2`. [bench/README.md](../bench/README.md)
      describes the benchmarks, [Known issues](known-issues.md) has what is slower or larger than elsewhere.

      ![Memory of Ruby programs by allocator](images/memory.svg)

      ## Goals

      "Best" is the best of the other allocators measured.

    MARKDOWN

    def initialize
      names = Dir[File.join(ResultFile::FOLDER, "*.json")].map { |path| File.basename(path, ".json") }.sort
      @files = (names - ["goals"]).to_h { |name| [name, ResultFile.load(name)] }
    end

    # @return [Hash{String => String}] path to text, of what a checkout has
    def files = { PAGE => to_s, README_CHART => readme_chart.to_s }

    # @return [Hash{String => String}] name to text, of what is drawn when the site is built
    def charts = Families::ALL.to_h { |family| [chart_name(family), chart(family).to_s] }

    # @return [String] the page
    def to_s = "#{HEAD}#{Goals.new(@files)}\n#{Families::ALL.map { |family| section(family) }.join("\n")}\n#{list}"

    private

    def chart_name(family) = "benchmarks-#{family.slug}.svg"

    # Commands and remarks stand where a file is shown first.
    def section(family)
      earlier = Families::ALL.take_while { |other| !other.equal?(family) }.flat_map(&:names)
      files = @files.values_at(*(family.names - earlier))
      parts = ["## #{family.heading}\n", "#{family.text}\n", block(files.flat_map(&:commands).uniq, "    "),
               "<!-- picture: #{chart_name(family)} #{family.heading} -->\n",
               *family.tables.map { |part| table(part) }, block(remarks(files), "- ")]
      parts.compact.join("\n")
    end

    def block(lines, prefix) = lines.empty? ? nil : lines.map { |line| "#{prefix}#{line}\n" }.join

    # With the file's title where a section has several files.
    def remarks(files)
      files.flat_map { |file| file.remarks.map { |remark| files.one? ? remark : "#{file.title}: #{remark}" } }
    end

    def table(part) = Table.new(part.rows(@files), ratio: part.ratio).public_send(part.layout)

    def chart(family)
      columns, filter, grouping = family.chart
      rows = family.tables.flat_map { |part| part.rows(@files) }.select { |row| filter.nil? || filter.call(row) }
      metrics = rows.map(&:metric).uniq
      panels = grouping == :metric ? panels_by_metric(rows) : panels_by_subject(rows, metrics)
      Chart.new("#{family.heading}: #{metrics.join(", ")}", panels, columns: columns)
    end

    def panels_by_metric(rows)
      rows.group_by(&:metric).map do |name, list|
        bars = list.map { |row| bar(row, row.contender.start_with?("culet") ? row.subject : row.contender) }
        Chart::Panel.new(name, list.first.unit, bars)
      end
    end

    def panels_by_subject(rows, metrics)
      rows.group_by { |row| [row.subject, row.metric] }.map do |(subject, name), list|
        panel(metrics.one? ? subject : "#{subject}: #{name}", list)
      end
    end

    def readme_chart
      panels = Families::README.map do |file, subject, metric, title|
        panel(title, @files.fetch(file).rows.select { |row| row.subject == subject && row.metric == metric })
      end
      Chart.new("Memory of Ruby programs by allocator", panels, columns: 2)
    end

    def panel(title, rows)
      Chart::Panel.new(title, rows.first.unit.sub("ratio", ""), rows.map { |row| bar(row, row.contender) })
    end

    def bar(row, label) = Chart::Bar.new(label, row, row.contender.start_with?("culet"))

    def list
      lines = @files.values.map { |file| listed(file) }
      "## Result files\n\n#{Table.markdown(%w[file title date Ruby system machine], lines, left: 6)}"
    end

    def listed(file)
      ruby, glibc, system, machine, load =
        file.environment.values_at("ruby", "glibc", "distribution", "machine", "load_average")
      ["[#{file.name}](benchmarks/#{file.name}.json)", file.title, file.date, ruby[/\d[\d.]+\d/],
       system || "glibc #{glibc}", machine || (load ? "load average #{load}" : "–")]
    end
  end
end
