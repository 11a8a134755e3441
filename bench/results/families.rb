# frozen_string_literal: true

module Bench
  # The sections of docs/benchmarks.md, in their order.
  module Families
    # text: a sentence or two; tables: Parts; chart: [columns of panels, filter of rows, :metric for one panel of all subjects]
    Family = Struct.new(:heading, :text, :tables, :chart, keyword_init: true) do
      def slug = heading.downcase.gsub(/[^\w\- ]/, "").tr(" ", "-")
      def names = tables.flat_map(&:names).uniq
    end
    # names: of result files; metrics: to show, all where nil; layout: :by_contender or :by_metric; ratio: see Table;
    # only: which rows, a Proc; prefix: what the file's rows are called before their subject, by the file's name
    Part = Struct.new(:names, :metrics, :layout, :ratio, :only, :prefix, keyword_init: true) do
      # @param files [Hash{String => ResultFile}]
      # @return [Array<Row>]
      def rows(files)
        names.flat_map do |name|
          found = files.fetch(name).rows.select { |row| (metrics.nil? || metrics.include?(row.metric)) && (only.nil? || only.call(row)) }
          prefix ? found.map { |row| row.dup.tap { |copy| copy.subject = "#{prefix.fetch(name)}, #{row.subject}" } } : found
        end
      end
    end
    WORKLOADS = %w[workloads workloads-fork workloads-servers workloads-cluster].freeze
    SERVERS = %w[rack rails cluster-warm].freeze
    CULET = ["culet", nil].freeze
    private_constant :WORKLOADS, :SERVERS, :CULET

    def self.by_contender(*names, **others) = Part.new(names: names, layout: :by_contender, **others)
    def self.by_metric(*names, **others) = Part.new(names: names, layout: :by_metric, **others)
    private_class_method :by_contender, :by_metric

    ALL = [
      Family.new(heading: "Memory of workloads", text: "Peak resident memory of the built-in workloads of `culet compare`. Mean RSS, PSS and wall time are in the result files.",
                 tables: [by_contender(*WORKLOADS, metrics: ["peak RSS"], ratio: CULET)], chart: [3, nil]),
      Family.new(heading: "CPU time of workloads", text: "The same runs; for servers the CPU time of a request.",
                 tables: [by_contender(*WORKLOADS, metrics: ["CPU time", "CPU time per request"], ratio: CULET, only: ->(row) { SERVERS.include?(row.subject) == (row.metric != "CPU time") })], chart: [3, nil]),
      Family.new(heading: "Replayed traces", text: "Peak RSS over the most memory requested at once, without Ruby: the same calls of malloc for every allocator.",
                 tables: [by_contender("traces", metrics: ["peak RSS over requested"], ratio: CULET)], chart: [3, nil]),
      Family.new(heading: "Memory of the allocator", text: "Start-up, idle memory 3 s after a burst, copy-on-write after fork, and waste by rounding; `bench/allocator/run --list` describes the probes.",
                 tables: [by_contender("allocator-memory", ratio: CULET, only: ->(row) { !row.metric.match?(/floor|1 s after|of the request/) })], chart: [3, ->(row) { row.metric.match?(/Private_Dirty|3 s after, process/) }]),
      Family.new(heading: "CPU time of one thread", text: "CPU time of one operation.", tables: [by_contender("allocator-cpu", metrics: ["CPU per operation"], ratio: CULET)], chart: [3, nil]),
      Family.new(heading: "Instructions", text: "Instructions of one operation in user space, counted by callgrind, some 13 of the probe's loop included.",
                 tables: [by_contender("allocator-instructions", ratio: CULET)], chart: [3, nil]),
      Family.new(heading: "Parallel programs", text: "Throughput of several threads, peak memory over live memory, and the CPU time of one operation of several builds.",
                 tables: [by_contender("allocator-parallel", metrics: ["operations per second", "peak RSS over live", "RSS at the end over a tenth in", "peak RSS"], ratio: CULET),
                          by_contender("allocator-parallel-builds", metrics: ["CPU per operation"], ratio: %w[culet mimalloc])], chart: [3, ->(row) { row.metric == "operations per second" }]),
      Family.new(heading: "Cost as the heap grows", text: "malloc and free in a heap of 1, 4 and 16 GB, `malloc_trim` (or the allocator's own) after half of 512 MiB were freed, and 20,000 forks.",
                 tables: [by_contender("allocator-growth", ratio: CULET, only: ->(row) { !row.metric.match?(/at the end|forks done|wall time/) })], chart: [2, ->(row) { row.metric.match?(/CPU per 100 MB|RSS after/) }]),
      Family.new(heading: "Trims", text: "RSS when the work is done, with a full collection and a second of rest: without trims, with the smallest extension that trims at the end of each major collection, and with `culet/auto`.",
                 tables: [by_contender("trims-ruby-3.1", "trims-ruby-3.3", "trims-ruby-3.4", "trims-ruby-4.0", metrics: ["end RSS"], ratio: ["culet/auto", "trim at the end of the sweep"],
                                       prefix: %w[3.1 3.3 3.4 4.0].to_h { |version| ["trims-ruby-#{version}", "Ruby #{version}"] }),
                          by_contender("trims-allocators", metrics: ["end RSS"]), by_contender("cpu-trim", metrics: ["CPU time"])], chart: [2, ->(row) { row.subject.start_with?("Ruby 3.1") }]),
      Family.new(heading: "Puma with culet/auto", text: "Two Pumas under the same load, one of them with `culet/auto`: ratios of the one to the other, and memory at rest. Then how often a cluster ends by SIGTERM right after requests.",
                 tables: [by_metric("trims-puma", only: ->(row) { row.unit == "ratio" }), by_contender("trims-puma", metrics: ["PSS at rest"]), by_metric("sigterm")],
                 chart: [2, ->(row) { row.metric == "PSS at rest" && row.subject.match?(/\Arack\z|rack, 11|cluster,|majors/) }]),
      Family.new(heading: "Require index", text: "Boot of Redmine, and what recording requires costs a Rails application.", tables: [by_metric("require-index"), by_metric("require-cost")],
                 chart: [3, ->(row) { row.subject == "Redmine" && ["failed opens", "failing opens", "RSS", "CPU time"].include?(row.metric) }]),
      Family.new(heading: "Copy-on-write", text: "PSS of parent and child after ten million strings in one array, a fork and two collections; then the same with a warm-up before the fork; then the pages that a Puma worker unshared in 600 requests.",
                 tables: [by_contender("cow-rubies", metrics: ["PSS at the end"], ratio: CULET), by_contender("cow-rubies-warm", ratio: CULET), by_contender("cow-worker", ratio: CULET)],
                 chart: [3, ->(row) { row.metric == "PSS at the end" && !row.subject.start_with?("Python") }]),
      Family.new(heading: "Strings", text: "`culet strings` and `heapy read` on one dump, and `culet strings` on a process.", tables: [by_metric("strings"), by_metric("strings-process"), by_contender("strings-suffix")],
                 chart: [2, ->(row) { ["user time", "peak RSS"].include?(row.metric) }]),
      Family.new(heading: "Reader", text: "Reading the heap of another process with culet-scope. The kernel's copying alone bounds every reader.", tables: [by_metric("reader")], chart: [2, ->(row) { row.metric.match?(/CPU second|longest/) }, :metric]),
      Family.new(heading: "Newest Rubies", text: "The same workloads in a root of Debian testing, with the newest packaged allocators.",
                 tables: [by_contender("newest-ruby-3.3", "newest-ruby-3.4", metrics: ["peak RSS", "CPU time"], ratio: CULET, prefix: { "newest-ruby-3.3" => "Ruby 3.3", "newest-ruby-3.4" => "Ruby 3.4" })],
                 chart: [3, ->(row) { row.metric == "peak RSS" }]),
      Family.new(heading: "Redmine", text: "Redmine under Puma on Debian testing. Each worker answers at least its share of the requests.",
                 tables: [by_metric("redmine-single", "redmine-cluster"), by_metric("redmine-goal", prefix: { "redmine-goal" => "longer load" }), by_contender("redmine-requests", metrics: ["PSS"], ratio: CULET, prefix: { "redmine-requests" => "two runs" }), by_contender("redmine-steps", metrics: ["PSS"])],
                 chart: [2, ->(row) { ["one process of 8 threads", "three workers", "three workers, warmed up"].include?(row.subject) && row.metric == (row.subject.start_with?("one") ? "RSS" : "PSS") }])
    ].freeze

    # Panels of the README's chart: file, subject, metric, title.
    README = [["workloads", "threads", "peak RSS", "threads, peak RSS"], ["workloads-servers", "rack", "peak RSS", "Rack on Puma, peak RSS"],
              ["redmine-single", "one process of 8 threads", "RSS", "Redmine, one Puma of 8 threads, RSS"],
              ["redmine-cluster", "three workers, warmed up", "PSS", "Redmine, three warmed-up Puma workers, PSS"]].freeze
  end
end
