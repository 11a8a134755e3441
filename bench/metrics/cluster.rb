# frozen_string_literal: true

require "net/http"
require "culet/system/clock"
require_relative "../cluster"

module MetricsBench
  # Forked workers with culet/metrics or without.
  class Cluster < Bench::Cluster
    THREAD = /\Aculet-metrics/
    CODE = { "idle" => "sleep", "busy" => "loop { Array.new(2_000) { +'x' * 100 }; sleep 0.05 }" }.freeze

    # What one scrape took.
    Scrape = Struct.new(:seconds, :bytes, :samples)

    # @param kind [String] a key of CODE: what a worker does
    # @param megabytes [Integer] of the heap that workers share
    # @param metrics [Boolean]
    def initialize(kind, workers:, megabytes:, metrics:)
      super("culet/metrics", begins: metrics ? "Culet::Metrics.start(port)" : "", worker: CODE.fetch(kind),
                             workers: workers, megabytes: megabytes)
    end

    def scrape
      start = Culet::Clock.now
      text = Net::HTTP.get(URI("http://127.0.0.1:#{@port}/metrics"))
      seconds = Culet::Clock.now - start
      Scrape.new(seconds, text.bytesize, text.scan(/^ruby_gc_time/).size)
    end

    # @return [Float] CPU seconds of all threads of culet/metrics so far
    def cpu_seconds = thread_seconds(THREAD)

    # @return [Integer] proportional memory of all processes
    def bytes = pids.sum { |pid| Culet::Processes::Memory.pss_bytes(pid) || 0 }
  end
end
