# frozen_string_literal: true

require_relative "chart"
require_relative "families"
require_relative "goals"
require_relative "result_file"
require_relative "table"

module Bench
  # docs/benchmarks.md and its charts.
  class Page
    PAGE = File.join(ROOT, "docs/benchmarks.md")
    IMAGES = File.join(ROOT, "docs/images")
    HEAD = <<~MARKDOWN
      # Benchmarks

      <!-- Written by bench/report from docs/benchmarks/*.json. Do not edit. -->

      Results whatever they say about culet. Medians; in parentheses 95 % bootstrap intervals where a result file has no other
      remark. The best figure of a line is bold. All machines were virtual, with 2 processors that other work shared unless
      the [list of result files](#result-files) says otherwise: compare ratios. Memory figures repeat well; CPU times within
      10 to 20 %. `glibc:arena_max=2` is glibc with `MALLOC_ARENA_MAX=2`. [bench/README.md](../bench/README.md) describes the
      benchmarks, [limits.md](limits.md) what is known not to work.

      ![Memory of Ruby programs by allocator](images/memory.svg)

      ## Goals

      "Best" is the best of the other allocators measured.

    MARKDOWN
    private_constant :HEAD

    def initialize
      @files = Dir[File.join(ResultFile::FOLDER, "*.json")].map { |path| File.basename(path, ".json") }.sort.reject { |name| name == "goals" }
                                                           .to_h { |name| [name, ResultFile.load(name)] }
    end

    # @return [Hash{String => String}] path to text
    def files
      charts = Families::ALL.select(&:chart).to_h { |family| [image(family), chart(family).to_s] }
      { PAGE => to_s, File.join(IMAGES, "memory.svg") => readme_chart.to_s, **charts }
    end

    # @return [String] the page
    def to_s = "#{HEAD}#{Goals.new(@files)}\n#{Families::ALL.map { |family| section(family) }.join("\n")}\n#{list}"

    private

    def image(family) = File.join(IMAGES, "benchmarks-#{family.slug}.svg")

    # Commands and remarks stand where a file is shown first.
    def section(family)
      earlier = Families::ALL.take_while { |other| !other.equal?(family) }.flat_map(&:names)
      files = @files.values_at(*(family.names - earlier))
      commands, remarks = %i[commands remarks].map { |part| files.flat_map(&part).uniq }
      ["## #{family.heading}\n", "#{family.text}\n", *(commands.map { |command| "    #{command}\n" }.join unless commands.empty?),
       *("![#{family.heading}](images/#{File.basename(image(family))})\n" if family.chart), *family.tables.map { |part| table(part) },
       *(remarks.map { |remark| "- #{remark}\n" }.join unless remarks.empty?)].join("\n")
    end

    def table(part) = Table.new(part.rows(@files), ratio: part.ratio).public_send(part.layout)

    def chart(family)
      columns, filter, grouping = family.chart
      rows = family.tables.flat_map { |part| part.rows(@files) }.select { |row| filter.nil? || filter.call(row) }
      metric = rows.map(&:metric).uniq
      panels = if grouping == :metric
                 rows.group_by(&:metric).map { |name, list| Chart::Panel.new(name, list.first.unit, list.map { |row| bar(row, row.contender.start_with?("culet") ? row.subject : row.contender) }) }
               else
                 rows.group_by { |row| [row.subject, row.metric] }.map { |(subject, name), list| panel([subject, *(name if metric.size > 1)].join(": "), list) }
               end
      Chart.new("#{family.heading}: #{metric.join(", ")}", panels, columns: columns)
    end

    def readme_chart
      panels = Families::README.map { |file, subject, metric, title| panel(title, @files.fetch(file).rows.select { |row| row.subject == subject && row.metric == metric }) }
      Chart.new("Memory of Ruby programs by allocator", panels, columns: 2)
    end

    def panel(title, rows) = Chart::Panel.new(title, rows.first.unit.sub("ratio", ""), rows.map { |row| bar(row, row.contender) })
    def bar(row, label) = Chart::Bar.new(label, row, row.contender.start_with?("culet"))

    def list
      lines = @files.values.map do |file|
        ruby, glibc, distribution, machine, load = file.environment.values_at("ruby", "glibc", "distribution", "machine", "load_average")
        "| [#{file.name}](benchmarks/#{file.name}.json) | #{file.title} | #{file.date} | #{ruby[/\d[\d.]+\d/]} | #{distribution || "glibc #{glibc}"} | #{machine || (load ? "load average #{load}" : "–")} |\n"
      end
      "## Result files\n\n| file | title | date | Ruby | system | machine |\n| --- | --- | --- | --- | --- | --- |\n#{lines.join}"
    end
  end
end
