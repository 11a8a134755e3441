# frozen_string_literal: true

module AllocatorBench
  # Every probe.
  module Catalogue
    GIB = 1 << 30
    RUNS = 5
    TIMEOUT_SECONDS = 120

    # Headings of the tables.
    GROUPS = {
      startup: "Start-up", idle: "Idle", cow: "Copy-on-write", parallel: "Parallel programs", classes: "Size classes",
      fork: "Fork", growth: "Cost as work grows", cpu: "CPU of one thread"
    }.freeze

    module_function

    def probes = @probes ||= [startup, idle, cow, parallel, classes, fork, growth, cpu].flatten.freeze

    def figure(key, label, unit) = Bench::Figure.new(key: key.to_s, label: label, unit: unit)

    def probe(group, name, about, program, arguments,
              tiny:, figures:, runs: RUNS, timeout: TIMEOUT_SECONDS, memory: GIB)
      Probe.new(name: name, group: group, about: about, program: program, arguments: arguments.split, tiny: tiny.split,
                figures: figures, runs: runs, timeout: timeout, memory: memory)
    end

    def startup
      figures = [figure(:private_dirty_bytes, "Private_Dirty", :mib)]
      [probe(:startup, "startup-ruby", "`ruby -e 1`", "startup.rb", "", tiny: "", figures: figures),
       probe(:startup, "startup-threads", "Ruby with 20 short-lived threads", "startup.rb", "threads=20",
             tiny: "threads=2", figures: figures),
       probe(:startup, "startup-c", "C with 20 short-lived threads", "startup", "threads=20",
             tiny: "threads=2", figures: figures)]
    end

    def idle
      figures = [figure(:process_rss_after_1s_bytes, "RSS 1 s after, process", :mib),
                 figure(:process_rss_after_3s_bytes, "RSS 3 s after, process", :mib),
                 figure(:child_rss_after_3s_bytes, "RSS 3 s after, child", :mib),
                 figure(:process_floor_bytes, "floor, process", :mib), figure(:child_floor_bytes, "floor, child", :mib)]
      [["mixed", 16, 2048], ["64", 64, 64], ["256", 256, 256], ["1024", 1024, 1024]].map do |name, min, max|
        blocks = min == max ? min.to_s : "#{min} to #{max}"
        probe(:idle, "idle-#{name}", "250 MiB burst of four threads, blocks of #{blocks} bytes", "idle",
              "min=#{min} max=#{max}",
              tiny: "bytes=4M milliseconds=50", figures: figures, runs: 3)
      end
    end

    def cow
      figures = [figure(:private_dirty_growth_bytes, "Private_Dirty growth", :mib)]
      [64, 256, 1024].map do |size|
        probe(:cow, "cow-#{size}", "child frees one block of #{size} bytes in each page of 64 MiB", "cow",
              "size=#{size}",
              tiny: "bytes=1M", figures: figures, runs: 3)
      end + [probe(:cow, "cow-ruby", "Ruby child drops 1/8 of 300,000 strings", "cow.rb", "",
                   tiny: "strings=2000", figures: figures, runs: 3)]
    end

    def parallel
      pair = [figure(:operations_per_second, "operations per second", :rate), cpu_per_operation]
      bounded = [*pair, figure(:peak_over_live, "peak RSS over live", :times)]
      generations = [*bounded, figure(:growth_after_a_tenth, "RSS at the end over a tenth in", :times)]
      ruby = [*pair, figure(:peak_rss_bytes, "peak RSS", :mib)]
      small = "operations=50k"
      [
        ["replace-2-small", "2 threads replace at random, 1,000 blocks each", "replace",
         "threads=2 set=1000 operations=8M", small, pair],
        ["replace-2-large", "2 threads replace at random, 100,000 blocks each", "replace",
         "threads=2 set=100000 operations=4M", small, bounded],
        ["replace-8", "8 threads replace at random, 20,000 blocks each", "replace",
         "threads=8 set=20000 operations=4M", small, bounded],
        ["queue", "one thread allocates, another frees", "queue", "depth=512", small, bounded],
        ["queue-8", "four threads allocate, four free", "queue", "producers=4 consumers=4 depth=512", small, bounded],
        ["gather", "seven threads allocate, one frees", "queue", "producers=7 consumers=1 depth=512", small, bounded],
        ["generations", "threads come and go and leave blocks to others", "generations",
         "threads=2 generations=1000", "generations=20", generations],
        ["larson", "server of 2 threads that hand over and end", "larson",
         "threads=2 set=20000 operations=4M", small, bounded],
        ["larson-8", "server of 8 threads that hand over and end", "larson",
         "threads=8 set=5000 operations=4M", small, bounded],
        ["pair-2", "2 threads, malloc and free at once", "pair", "threads=2 min=16 max=1024", small, pair],
        ["sequence-2", "2 threads, 10,000 mallocs, then as many frees", "sequence",
         "threads=2 rounds=100", "rounds=2", pair],
        ["ractors", "2 Ractors build strings and arrays", "ractors.rb", "", "operations=20000", ruby]
      ].map do |name, about, program, arguments, tiny, figures|
        probe(:parallel, name, about, program, arguments, tiny: tiny, figures: figures)
      end
    end

    def cpu_per_operation = figure(:cpu_nanoseconds_per_operation, "CPU per operation", :nanoseconds)

    def classes
      [probe(:classes, "classes", "usable size against the request", "classes", "", tiny: "to=2048", runs: 1, figures: [
               figure(:mean_waste, "mean waste, 17 to 1,024 bytes", :percent),
               figure(:largest_waste, "largest waste, 128 to 32,768 bytes", :percent),
               figure(:largest_excess, "largest excess, of the request", :percent),
               figure(:big_excess_bytes, "largest excess of blocks above 4 MiB", :bytes)
             ])]
    end

    def fork
      [probe(:fork, "fork", "20,000 forks with four allocating threads", "fork", "forks=20000",
             tiny: "forks=20", runs: 1, timeout: 900, figures: [
               figure(:forks, "forks done", :count),
               figure(:hangs, "hangs", :count),
               figure(:damaged, "blocks lost or given out twice", :count),
               figure(:wall_seconds, "wall time", :seconds)
             ])]
    end

    def growth
      figures = [
        figure(:hot_nanoseconds_at_last, "replacement in 10,000 blocks, at the end", :nanoseconds),
        figure(:hot_growth, "growth of a replacement in 10,000 blocks", :times),
        figure(:all_nanoseconds_at_last, "replacement over all the heap, at the end", :nanoseconds),
        figure(:all_growth, "growth of a replacement over all the heap", :times),
        figure(:plain_growth, "growth of the same visits without malloc", :times),
        figure(:all_growth_over_plain, "growth of a replacement over all the heap, over that of plain visits", :times),
        figure(:fill_growth, "growth of a first malloc", :times)
      ]
      trim = [
        figure(:cpu_milliseconds_per_100mb, "CPU per 100 MB of heap", :milliseconds),
        figure(:kernel_milliseconds_per_100mb, "what one madvise over the returned bytes needs", :milliseconds),
        figure(:longest_wait_seconds, "longest wait of another thread", :wait),
        figure(:rss_after_bytes, "RSS after", :mib)
      ]
      [
        probe(:growth, "growth-1g", "live heap of 64 MiB to 1 GiB", "growth", "from=64M to=1G",
              tiny: "from=1M to=4M operations=20k", figures: figures, runs: 3, memory: 5 * GIB),
        probe(:growth, "growth-16g", "live heap of 1, 4 and 16 GB", "growth", "from=1000000000 to=16000000000",
              tiny: "from=1M to=4M operations=20k", figures: figures, runs: 1, timeout: 600, memory: 21 * GIB),
        probe(:growth, "trim", "trim after freeing half of 512 MiB by stretches of 4 MiB", "trim", "stretch=4M",
              tiny: "bytes=8M stretch=1M", figures: trim, runs: 3),
        probe(:growth, "trim-scattered", "trim after freeing half of 512 MiB by stretches of 64 KiB", "trim",
              "stretch=64k",
              tiny: "bytes=8M", figures: trim, runs: 3)
      ]
    end

    def cpu
      own = cpu_per_operation
      speed = [own]
      both = [own, figure(:peak_over_live, "peak RSS over live", :times)]
      untouched = [own, figure(:peak_rss_bytes, "peak RSS", :mib)] # most pages are never written
      halves = [own, figure(:cpu_nanoseconds_per_malloc, "CPU per malloc", :nanoseconds),
                figure(:cpu_nanoseconds_per_free, "CPU per free", :nanoseconds), both.last]
      small = "operations=20k"
      [
        ["pair-64", "malloc and free at once, 64 bytes", "pair", "min=64 max=64", small, speed],
        ["pair-mixed", "malloc and free at once, 16 to 1,024 bytes", "pair", "min=16 max=1024", small, speed],
        ["sequence-order", "10,000 mallocs, then frees in order", "sequence", "order=0", "rounds=2", halves],
        ["sequence-reverse", "10,000 mallocs, then frees in reverse", "sequence", "order=1", "rounds=2", halves],
        ["sequence-random", "10,000 mallocs, then frees at random", "sequence", "order=2", "rounds=2", halves],
        ["sweep-small", "10,000 mallocs, then another thread frees by address", "sequence",
         "order=3", "rounds=2", halves],
        ["sweep-large", "500,000 mallocs, then another thread frees by address", "sequence",
         "order=3 blocks=500000 rounds=5", "blocks=1000 rounds=2", halves],
        ["replace-small", "random replacement, 1,000 live blocks", "replace", "set=1000 operations=8M", small, speed],
        ["replace-medium", "random replacement, 100,000 live blocks", "replace",
         "set=100000 operations=4M", small, both],
        ["replace-large", "random replacement, 1,000,000 live blocks", "replace",
         "set=1000000 operations=2M", "operations=20k set=2000", both],
        ["medium", "random replacement, 1,000 blocks of 2 to 32 KiB", "replace",
         "set=1000 min=2048 max=32768 operations=2M", small, untouched],
        ["large", "random replacement, 16 blocks of 64 to 512 KiB, first and last page written", "replace",
         "set=16 min=65536 max=524288 operations=200k", "operations=2k", untouched],
        ["large-filled", "random replacement, 16 blocks of 64 to 512 KiB, wholly written", "replace",
         "set=16 min=65536 max=524288 operations=10k fill=1", "operations=200", both],
        ["calloc", "random replacement by calloc, 1,000 blocks of 16 to 4,096 bytes", "replace",
         "set=1000 zeroed=1 max=4096 operations=2M", small, both],
        ["grow-double", "100 buffers that double by realloc up to 64 KiB", "grow", "", small, both],
        ["grow-step", "10 buffers that grow by a fifth up to 4 MiB", "grow",
         "buffers=10 to=4M percent=120 operations=20k", "operations=2k", both]
      ].map do |name, about, program, arguments, tiny, figures|
        probe(:cpu, name, about, program, arguments, tiny: tiny, figures: figures)
      end
    end
  end
end
