# frozen_string_literal: true

module Bench
  # The sections of docs/benchmarks.md, in their order.
  module Families
    # text: a sentence or two; tables: Parts; chart: [columns of panels, filter of rows, :metric for one panel of all
    # subjects]
    Family = Struct.new(:heading, :text, :tables, :chart, keyword_init: true) do
      def slug = heading.downcase.gsub(/[^\w\- ]/, "").tr(" ", "-")
      def names = tables.flat_map(&:names).uniq
    end
    # names: of result files; metrics: all where nil; layout: :by_contender or :by_metric; ratio: see Table; only:
    # filter of rows; prefix: before the subjects of a file, by the file's name
    Part = Struct.new(:names, :metrics, :layout, :ratio, :only, :prefix, keyword_init: true) do
      # @param files [Hash{String => ResultFile}]
      def rows(files) = names.flat_map { |name| prefixed(name, files.fetch(name).rows.select { |row| shown?(row) }) }

      private

      def shown?(row) = (metrics.nil? || metrics.include?(row.metric)) && (only.nil? || only.call(row))

      def prefixed(name, rows)
        return rows unless prefix

        rows.map { |row| row.dup.tap { |copy| copy.subject = "#{prefix.fetch(name)}, #{row.subject}" } }
      end
    end
    WORKLOADS = %w[workloads workloads-fork workloads-servers workloads-cluster].freeze
    SERVERS = %w[rack rails cluster-warm].freeze
    CULET = ["culet", nil].freeze
    TRIMMED_RUBIES = %w[3.1 3.3 3.4 4.0].to_h { |version| ["trims-ruby-#{version}", "Ruby #{version}"] }.freeze
    NEWEST_RUBIES = %w[3.3 3.4].to_h { |version| ["newest-ruby-#{version}", "Ruby #{version}"] }.freeze
    REDMINE = { "one process of 8 threads" => "RSS", "three workers" => "PSS",
                "three workers, warmed up" => "PSS" }.freeze

    class << self
      private

      def by_contender(*names, **others) = Part.new(names: names, layout: :by_contender, **others)
      def by_metric(*names, **others) = Part.new(names: names, layout: :by_metric, **others)

      def family(heading, text, *tables, chart:)
        Family.new(heading: heading, text: text, tables: tables, chart: chart)
      end

      # @return [Proc] for rows of metrics
      def metric(pattern) = ->(row) { row.metric.match?(pattern) }

      def workloads
        server = ->(row) { SERVERS.include?(row.subject) }
        [family("Memory of workloads", <<~TEXT.chomp,
          Peak resident memory of the built-in workloads of `culet compare`. Mean RSS, PSS and wall time are in the
          result files.
        TEXT
                by_contender(*WORKLOADS, metrics: ["peak RSS"], ratio: CULET), chart: [3]),
         family("CPU time of workloads", "The same runs; for servers the CPU time of a request.",
                by_contender(*WORKLOADS, metrics: ["CPU time", "CPU time per request"], ratio: CULET,
                                         only: ->(row) { server.call(row) == (row.metric != "CPU time") }), chart: [3]),
         family("Replayed traces", <<~TEXT.chomp,
           Peak RSS over the most memory requested at once, without Ruby: the same calls of malloc for every allocator.
         TEXT
                by_contender("traces", metrics: ["peak RSS over requested"], ratio: CULET), chart: [3])]
      end

      def allocator
        throughput = ["operations per second", "peak RSS over live", "RSS at the end over a tenth in", "peak RSS"]
        memory = ->(row) { !row.metric.match?(/floor|1 s after|of the request/) }
        growth = ->(row) { !row.metric.match?(/at the end|forks done|wall time/) }
        [family("Memory of the allocator", <<~TEXT.chomp,
          Start-up, idle memory 3 s after a burst, copy-on-write after fork, and waste by rounding;
          `bench/allocator/run --list` describes the probes.
        TEXT
                by_contender("allocator-memory", ratio: CULET, only: memory),
                chart: [3, metric(/Private_Dirty|3 s after, process/)]),
         family("CPU time of one thread", "CPU time of one operation.",
                by_contender("allocator-cpu", metrics: ["CPU per operation"], ratio: CULET), chart: [3]),
         family("Instructions", <<~TEXT.chomp,
           Instructions of one operation in user space, counted by callgrind, some 13 of the probe's loop included.
         TEXT
                by_contender("allocator-instructions", ratio: CULET), chart: [3]),
         family("Parallel programs", <<~TEXT.chomp,
           Throughput of several threads, peak memory over live memory, and the CPU time of one operation of several
           builds.
         TEXT
                by_contender("allocator-parallel", metrics: throughput, ratio: CULET),
                by_contender("allocator-parallel-builds", metrics: ["CPU per operation"], ratio: %w[culet mimalloc]),
                chart: [3, metric(/\Aoperations/)]),
         family("Standard programs", <<~TEXT.chomp,
           Programs of the public collection mimalloc-bench; `bench/standard/run --list` describes them. Time is that of
           the whole program, or of a fixed number of operations where the program measures its own rate. Other work on
           the machine lengthens it, above all where several threads run; CPU time repeats better.
         TEXT
                by_contender("standard", metrics: ["time"], ratio: CULET),
                by_contender("standard", metrics: ["CPU time"], ratio: CULET),
                by_contender("standard", metrics: ["peak RSS"], ratio: CULET), chart: [3, metric(/\Atime\z/)]),
         family("Standard programs in Ruby", <<~TEXT.chomp,
           Small programs that use published gems and Ruby's libraries, and Debian's Redmine 5.0, five runs of each;
           `bench/standard/run --list` describes them. All figures are of the whole process, its start included. The
           CPU time of one program differs by up to a third from run to run: where intervals overlap, the order of the
           medians says little.
         TEXT
                by_contender("standard-ruby", metrics: ["CPU time"], ratio: CULET),
                by_contender("standard-ruby", metrics: ["peak RSS"], ratio: CULET), chart: [3, metric(/RSS/)]),
         family("Ruby's benchmark suite", <<~TEXT.chomp,
           Programs of [ruby-bench](https://github.com/ruby/ruby-bench), ten iterations each, on Debian 13's Ruby, whole
           processes, their start included.
         TEXT
                by_contender("ruby-bench", metrics: ["CPU time"], ratio: CULET),
                by_contender("ruby-bench", metrics: ["peak RSS"], ratio: CULET), chart: [3, metric(/RSS/)]),
         family("Cost as the heap grows", <<~TEXT.chomp,
           malloc and free in a heap of 1, 4 and 16 GB, `malloc_trim` (or the allocator's own) after half of 512 MiB
           were freed, and 20,000 forks.
         TEXT
                by_contender("allocator-growth", ratio: CULET, only: growth),
                chart: [2, metric(/CPU per 100 MB|RSS after/)]),
         family("Hardening", <<~TEXT.chomp,
           Share of small attacks that each allocator stops: it ended the process before the effect, or in none of 20
           runs there was an effect. `bench/hardening/run --list` describes the attacks.
           Then CPU time and memory of culet's levels (`CULET_HARDEN`).
         TEXT
                by_contender("hardening", ratio: %w[culet glibc]), by_contender("hardening-cost"), chart: [3])]
      end

      def profile
        [family("Cost of the profile", <<~TEXT.chomp,
          culet without the memory profile, and with it at the default distance of two samples, 512 KiB, and at 64 KiB.
          Then the CPU time of one sample.
        TEXT
                *["instructions per operation", "instructions per request", "CPU time", "peak RSS"].map do |name|
                  by_contender("profile-cost", metrics: [name], ratio: %w[512k off])
                end,
                by_contender("profile-cost", metrics: ["CPU time of a sample"]),
                chart: [2, metric(/\Apeak RSS\z/)])]
      end

      def trims
        [family("Trims", <<~TEXT.chomp,
          RSS when the work is done, after a full collection and a second of rest: without trims, with the smallest
          extension that trims at the end of each major collection, and with `culet/auto`.
        TEXT
                by_contender(*TRIMMED_RUBIES.keys, metrics: ["end RSS"], prefix: TRIMMED_RUBIES,
                                                   ratio: ["culet/auto", "trim at the end of the sweep"]),
                by_contender("trims-allocators", metrics: ["end RSS"]), by_contender("cpu-trim", metrics: ["CPU time"]),
                chart: [2, ->(row) { row.subject.start_with?("Ruby 3.1") }]),
         family("Puma with culet/auto", <<~TEXT.chomp,
           Two Pumas under the same load, one of them with `culet/auto`: ratios of the one to the other, and memory at
           rest. Then how often a cluster ends by SIGTERM right after requests.
         TEXT
                by_metric("trims-puma", only: ->(row) { row.unit == "ratio" }),
                by_contender("trims-puma", metrics: ["PSS at rest"]), by_metric("sigterm"),
                chart: [2, lambda { |row|
                  row.metric == "PSS at rest" && row.subject.match?(/\Arack(, glibc)?\z|rack, 11|cluster,|majors/)
                }])]
      end

      def limit
        [family("Memory limit", <<~TEXT.chomp,
          Puma clusters of two workers under load in a control group: with `culet/limit`, and with puma_worker_killer on
          jemalloc. Then programs in 0.6 of what they need without `culet/limit`, and what `culet/limit` costs a process
          that is far from its limit.
        TEXT
                by_contender("limit-clusters"), by_metric("limit-programs"), by_contender("limit-cost"),
                chart: [2, metric(/\A(failed requests|restarts)\z/)])]
      end

      def tools
        [family("Require index", "Boot of Redmine, and what recording requires costs a Rails application.",
                by_metric("require-index"), by_metric("require-cost"),
                chart: [3, ->(row) { row.subject == "Redmine" && row.metric.match?(/failing|RSS|CPU/) }]),
         family("Copy-on-write", <<~TEXT.chomp,
           PSS of parent and child after ten million strings in one array, a fork and two collections; then the same
           with a warm-up before the fork; then the pages that a Puma worker unshared in 600 requests.
         TEXT
                by_contender("cow-rubies", metrics: ["PSS at the end"], ratio: CULET),
                by_contender("cow-rubies-warm", ratio: CULET), by_contender("cow-worker", ratio: CULET),
                chart: [3, ->(row) { row.metric == "PSS at the end" && !row.subject.start_with?("Python") }]),
         family("Strings", "`culet strings` and `heapy read` on one dump, and `culet strings` on a process.",
                by_metric("strings"), by_metric("strings-process"), by_contender("strings-suffix"),
                chart: [2, metric(/\A(user time|peak RSS)\z/)]),
         family("Reader", <<~TEXT.chomp,
           Reading the heap of another process with culet-scope. The kernel's copying alone bounds every reader.
         TEXT
                by_metric("reader"), chart: [2, metric(/CPU second|longest/), :metric])]
      end

      def applications
        [family("Newest Rubies", <<~TEXT.chomp,
          The same workloads in a root of Debian testing, with the newest packaged allocators.
        TEXT
                by_contender(*NEWEST_RUBIES.keys, metrics: ["peak RSS", "CPU time"], ratio: CULET,
                                                  prefix: NEWEST_RUBIES),
                chart: [3, metric(/RSS/)]),
         family("Redmine", <<~TEXT.chomp,
           Redmine under Puma on Debian testing. Each worker answers at least its share of the requests.
         TEXT
                by_metric("redmine-single", "redmine-cluster"),
                by_metric("redmine-goal", prefix: { "redmine-goal" => "longer load" }),
                by_contender("redmine-requests", metrics: ["PSS"], ratio: CULET,
                                                 prefix: { "redmine-requests" => "two runs" }),
                by_contender("redmine-steps", metrics: ["PSS"]),
                chart: [2, ->(row) { REDMINE[row.subject] == row.metric }])]
      end
    end

    ALL = [*workloads, *allocator, *profile, *trims, *limit, *tools, *applications].freeze

    # Panels of the README's chart: file, subject, metric, title.
    README = [
      ["workloads", "threads", "peak RSS", "threads, peak RSS"],
      ["workloads-servers", "rack", "peak RSS", "Rack on Puma, peak RSS"],
      ["redmine-single", "one process of 8 threads", "RSS", "Redmine, one Puma of 8 threads, RSS"],
      ["redmine-cluster", "three workers, warmed up", "PSS", "Redmine, three warmed-up Puma workers, PSS"]
    ].freeze
  end
end
