# frozen_string_literal: true

require "etc"
require "json"
require "time"
require "culet/system/atomic_file"
require "culet/allocators"
require "culet/model/statistics"

module Bench
  # One figure: of a subject (a workload, a probe, an application), for a contender.
  #
  # metric: what was measured; unit: of median, low and high; low, high: ends of the interval, nil without one;
  # runs: nil where their number is not known
  Row = Struct.new(:subject, :contender, :metric, :unit, :median, :low, :high, :runs, keyword_init: true) do
    # @param values [Array<Numeric, nil>] one of each run
    # @return [Row, nil] nil without a value
    def self.of(values, factor: 1, **names)
      return if values.compact.empty?

      summary = Culet::Statistics.new(seed: 1).summary(values.compact.map { |value| value * factor })
      new(**names, **%w[median low high].to_h { |key| [key.to_sym, summary[key]&.round(9)] }, runs: values.compact.size)
    end

    # @param runs [Array<Hash>] the figures of each run
    # @param metrics [Hash{String => Array}] metric to the key of its figure, its unit, and a factor
    # @return [Array<Row>] of the metrics that have a value
    def self.of_runs(runs, metrics, **names)
      metrics.filter_map do |metric, (key, unit, factor)|
        of(runs.map { |run| run[key] }, factor: factor || 1, metric: metric, unit: unit, **names)
      end
    end

    # @param summary [Hash] of Culet::Statistics
    # @return [Row]
    def self.of_summary(summary, factor: 1, **names)
      new(**names, **%w[median low high].to_h { |key| [key.to_sym, summary[key]&.*(factor)] })
    end

    def to_h = super.compact
  end

  # A file of docs/benchmarks: the results of one command, with the machine and the date. Reads documents of
  # `culet compare --json` too.
  class ResultFile
    FOLDER = File.expand_path("../../docs/benchmarks", __dir__)
    KEYS = %w[title command date environment remarks results].freeze
    # Metrics of `culet compare`: label, unit, factor.
    COMPARED = {
      "peak_rss_bytes" => ["peak RSS", "MB", 1e-6], "mean_rss_bytes" => ["mean RSS", "MB", 1e-6],
      "end_rss_bytes" => ["end RSS", "MB", 1e-6], "peak_pss_bytes" => ["peak PSS", "MB", 1e-6],
      "mean_pss_bytes" => ["mean PSS", "MB", 1e-6], "end_pss_bytes" => ["end PSS", "MB", 1e-6],
      "loaded_rss_bytes" => ["RSS after the load", "MB", 1e-6],
      "loaded_pss_bytes" => ["PSS after the load", "MB", 1e-6],
      "cpu_seconds" => ["CPU time", "s", 1], "wall_seconds" => ["wall time", "s", 1],
      "requests_per_second" => ["requests per second", "1/s", 1],
      "cpu_per_request_seconds" => ["CPU time per request", "ms", 1e3],
      "p50_seconds" => ["median latency (p50)", "ms", 1e3],
      "p99_seconds" => ["99th percentile latency (p99)", "ms", 1e3]
    }.freeze

    attr_reader :name, :title, :commands, :date, :environment, :remarks, :rows

    # @param path [String, nil] nil: nothing is written
    # @param results [Hash] see of
    def self.write(path, **results) = (of(**results).save(path) if path)

    # @param rows [Array<Row, nil>]
    # @param command [String, Array<String>]
    # @param environment [Hash] besides the machine
    # @param remarks [Array<String>] sentences for the page
    # @return [ResultFile] of today
    def self.of(title:, rows:, command: command_line, environment: {}, remarks: [])
      new(title, { "title" => title, "command" => command, "date" => Time.now.utc.strftime("%F"),
                   "environment" => { **machine, **environment }, "remarks" => remarks,
                   "results" => rows.compact.map(&:to_h) })
    end

    # @return [String] of this benchmark, without --out
    def self.command_line = [$PROGRAM_NAME.delete_prefix("#{Dir.pwd}/"), *ARGV].join(" ").sub(/ --out[ =]\S+/, "")

    # @return [Hash]
    def self.machine
      kilobytes = File.read("/proc/meminfo")[/^MemTotal:\s+(\d+)/, 1].to_i
      { "ruby" => RUBY_DESCRIPTION, "glibc" => Culet::Allocators.parse("glibc").version,
        "kernel" => Etc.uname[:release], "cores" => Etc.nprocessors,
        "memory" => format("%.1f GB", kilobytes * 1024 / 1e9), "load_average" => File.read("/proc/loadavg").to_f }
    end

    # @param name [String] without folder and extension
    def self.load(name) = read(File.join(FOLDER, "#{name}.json"))

    def self.read(path) = new(File.basename(path, ".json"), JSON.parse(File.read(path, encoding: Encoding::UTF_8)))

    def initialize(name, document)
      @name = name
      document = from_compare(document) if document.key?("comparisons")
      @title, command, @date, @environment, @remarks, rows = KEYS.map { |key| document.fetch(key) }
      @commands = Array(command)
      @rows = rows.map { |row| Row.new(**row.transform_keys(&:to_sym)) }
    end

    def save(path)
      head = { "title" => title, "command" => commands.one? ? commands.first : commands, "date" => date,
               "environment" => environment, "remarks" => remarks }
      lines = rows.map { |row| "    #{JSON.generate(row.to_h)}" }.join(",\n")
      Culet::AtomicFile.write(path, JSON.pretty_generate(head).sub(/\n}\z/, ",\n  \"results\": [\n#{lines}\n  ]\n}\n"))
    end

    # @param file [ResultFile] of later runs
    # @param subjects [Array<String>] whose earlier results and remarks it replaces
    # @return [ResultFile] both; the load average is the higher one
    def with(file, subjects:)
      load = [self, file].filter_map { |one| one.environment["load_average"] }.max
      ours = rows.reject { |row| subjects.include?(row.subject) }
      places = rows.map(&:subject) | file.rows.map(&:subject)
      sorted = (ours + file.rows).group_by(&:subject).values_at(*places).compact.flatten
      self.class.new(name, { "title" => file.title, "command" => commands | file.commands, "date" => file.date,
                             "environment" => { **environment, **file.environment, "load_average" => load },
                             "remarks" => remarks.grep_v(/\A#{Regexp.union(subjects)}[ ,]/) + file.remarks,
                             "results" => sorted.map(&:to_h) })
    end

    # @param names [Array<String>] subject, metric and contender
    # @return [Row, nil]
    def find(*names) = rows.find { |row| [row.subject, row.metric, row.contender] == names }

    private

    def from_compare(document)
      environment = document.fetch("environment")
      remarks = document.fetch("excluded").map do |one|
        "#{one["allocator"]} is missing on `#{one["workload"]}`: #{one["reason"]}."
      end
      { "title" => name, "command" => environment.fetch("command").gsub(/ --json\b| --out[ =]\S+/, ""),
        "date" => environment.fetch("started_at")[0, 10], "environment" => environment.except("command"),
        "remarks" => remarks, "results" => document.fetch("results").flat_map { |result| compared(result) } }
    end

    def compared(result)
      COMPARED.filter_map do |key, (metric, unit, factor)|
        summary = result.fetch("summary")[key] or next
        { "subject" => result["workload"], "contender" => result["allocator"], "metric" => metric, "unit" => unit,
          **summary.slice("median", "low", "high").compact.transform_values { |value| (value * factor).round(9) },
          "runs" => result["runs"].size }
      end
    end
  end
end
