# frozen_string_literal: true

module StandardBench
  # Every program, its arguments and how it is built. Arguments are the collection's where a run then takes 1 to 5 s on
  # two processors.
  module Catalogue
    RUNS = 5
    TIMEOUT_SECONDS = 120
    MILLION = 1_000_000
    FIGURES = [Bench::Figure.new(key: "time_seconds", label: "time", unit: :seconds),
               Bench::Figure.new(key: "cpu_seconds", label: "CPU time", unit: :seconds),
               Bench::Figure.new(key: "peak_rss_bytes", label: "peak RSS", unit: :mib)].freeze

    module_function

    def programs
      @programs ||= [
        program("cfrac", "factors an integer; small blocks, one thread",
                "%<built>s/cfrac 17545186520507317056371138836327483792789528"),
        *parallel,
        *caches,
        program("glibc-simple", "glibc's benchmark of bursts of equal blocks", "%<built>s/glibc-simple"),
        program("glibc-thread", "glibc's benchmark of random replacement; 100 million operations",
                "%<built>s/glibc-thread %<processors>d",
                rate: rate(/(\d+) iterations/, 100 * MILLION, factor: 1 / 2.0, seconds: 2)),
        program("redis", "server that appends to a list, pipelined; two million requests",
                "redis-server --port 0 --unixsocket %<folder>s/socket --save '' --appendonly no --dir %<folder>s",
                binary: nil, needs: %w[redis-server redis-benchmark redis-cli],
                client: "redis-benchmark -s %<folder>s/socket -r 1000000 -n 2000000 -q -P 16 " \
                        "lpush a 1 2 3 4 5 lrange a 1 5",
                rate: rate(/([\d.]+) requests per second/, 2 * MILLION)),
        program("rbstress-1", "Ruby script that makes strings; one thread",
                "%<ruby>s %<sources>s/rbstress/stress_mem.rb 1", binary: nil),
        program("rbstress", "the same by a thread for each processor",
                "%<ruby>s %<sources>s/rbstress/stress_mem.rb %<processors>d", binary: nil)
      ].freeze
    end

    # A thread for each processor, unless the name ends in 1.
    def parallel
      [
        program("larson", "server whose threads hand blocks to their successors; 100 million operations",
                "%<built>s/larson 2 8 1000 5000 100 4141 %<processors>d",
                rate: rate(/Throughput = +(\d+) operations per second/, 100 * MILLION, seconds: 2)),
        program("xmalloc-test", "threads that allocate for others to free; 100 million frees",
                "%<built>s/xmalloc-test -w %<processors>d -t 2 -s 64",
                rate: rate(%r{free/sec: ([\d.]+) M}, 100 * MILLION, factor: MILLION, seconds: 2)),
        program("alloc-test-1", "random replacement with a skewed choice of sizes; one thread",
                "%<built>s/alloc-test 1"),
        program("alloc-test", "the same by a thread for each processor", "%<built>s/alloc-test %<processors>d"),
        program("rptest", "threads that exchange blocks of 8 to 16,000 bytes; 10 million operations",
                "%<built>s/rptest %<processors>d 0 1 2 500 1000 1000 8 16000",
                rate: rate(%r{(\d+) memory ops/CPU second}, 10 * MILLION)),
        program("mstress", "threads that come and go and exchange blocks of many sizes",
                "%<built>s/mstress %<processors>d 50 1000"),
        program("sh6bench", "batches of blocks freed in order and in reverse", "%<built>s/sh6bench %<processors>d"),
        program("sh8bench", "batches of blocks freed by other threads", "%<built>s/sh8bench %<processors>d")
      ]
    end

    # False sharing between threads.
    def caches
      %w[scratch thrash].flat_map do |kind|
        name = "cache-#{kind}"
        about = kind == "scratch" ? "blocks passed to other threads and written" : "blocks written by each thread"
        [program("#{name}-1", "#{about}; one thread", "%<built>s/#{name} 1 1000 1 4000000 %<processors>d",
                 binary: name),
         program(name, "#{about}; a thread for each processor",
                 "%<built>s/#{name} %<processors>d 1000 1 4000000 %<processors>d")]
      end
    end

    def program(name, about, command, binary: name.delete_suffix("-1"), client: nil, rate: nil, needs: [])
      Program.new(name: name, about: about, binary: binary, command: command, client: client, rate: rate, needs: needs,
                  runs: RUNS, timeout: TIMEOUT_SECONDS, environment: {})
    end

    def rate(pattern, operations, factor: 1, seconds: nil)
      Rate.new(pattern: pattern, factor: factor, operations: operations, seconds: seconds)
    end

    # @return [Hash{String => Recipe}] by the name of the binary
    def recipes
      @recipes ||= {
        "cfrac" => c("cfrac/*.c", flags: %w[-std=gnu89 -DNOMEMOPT=1], without: %w[getopt.c ltop.c pfactor.c]),
        "larson" => cxx("larson/larson.cpp", flags: %w[-DCPP=1]),
        "xmalloc-test" => c("xmalloc-test/xmalloc-test.c"),
        "alloc-test" => cxx("alloc-test/*.cpp", flags: %w[-DBENCH=4],
                            edits: { "iterCount = 100000000" => "iterCount = 40000000" }),
        "rptest" => c("rptest/*.c", flags: %w[-fpermissive], edits: { "thread_sleep(1000)" => "thread_sleep(100)" }),
        "mstress" => c("mstress/mstress.c"),
        "sh6bench" => shbench("sh6bench"),
        "sh8bench" => shbench("sh8bench"),
        "cache-scratch" => cxx("cache-scratch/cache-scratch.cpp"),
        "cache-thrash" => cxx("cache-thrash/cache-thrash.cpp"),
        "glibc-simple" => c("glibc-bench/bench-malloc-simple.c"),
        "glibc-thread" => c("glibc-bench/bench-malloc-thread.c")
      }.freeze
    end

    def recipe(compiler, sources, flags: [], without: [], edits: {}, hint: nil)
      Recipe.new(compiler: compiler, sources: [sources], flags: flags, without: without, edits: edits, hint: hint)
    end

    def c(sources, **others) = recipe(:c, sources, **others)

    def cxx(sources, **others) = recipe(:cxx, sources, **others)

    # Their licence does not let the collection have them.
    def shbench(name)
      c("shbench/#{name}-new.c", flags: %w[-DBENCH=1 -DSYS_MULTI_THREAD=1],
                                 hint: "bench/shbench/readme.md there says where it is to be had")
    end
  end
end
