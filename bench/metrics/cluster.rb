# frozen_string_literal: true

require "net/http"
require "socket"
require "culet/system/clock"
require_relative "../processes"

module MetricsBench
  # A Ruby program that forks workers, which share a heap, with culet/metrics or without.
  class Cluster
    THREAD = /\Aculet-metrics/
    # Time for the workers to start, in seconds.
    WARM_UP = 3.0
    # What a worker does; `kept` is the shared heap.
    CODE = { "idle" => "sleep", "busy" => "loop { Array.new(2_000) { +'x' * 100 }; sleep 0.05 }" }.freeze

    # What one scrape took.
    Scrape = Struct.new(:seconds, :bytes, :samples)

    # @param kind [String] a key of CODE
    # @param megabytes [Integer] of the heap that workers share
    # @param metrics [Boolean]
    def initialize(kind, workers:, megabytes:, metrics:)
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      @code = <<~RUBY
        #{"Culet::Metrics.start(#{@port})" if metrics}
        kept = Array.new(#{megabytes * 1000}) { "x" * 1000 }
        3.times { GC.start }
        #{workers}.times { fork { #{CODE.fetch(kind)} } }
        puts
        $stdout.flush
        sleep
      RUBY
    end

    # @yieldparam [Cluster] while it runs
    # @return [Object] the block's value
    def run
      Bench::Processes.beside({ "CULET_METRICS" => nil }, "-rculet/metrics", "-e", @code, rest: WARM_UP) do |pid|
        @pid = pid
        yield self
      end
    end

    def scrape
      start = Culet::Clock.now
      text = Net::HTTP.get(URI("http://127.0.0.1:#{@port}/metrics"))
      seconds = Culet::Clock.now - start
      Scrape.new(seconds, text.bytesize, text.scan(/^ruby_gc_time/).size)
    end

    # @return [Float] CPU seconds of all threads of culet/metrics so far
    def cpu_seconds = Bench::Processes.thread_seconds(pids, THREAD)

    # @return [Integer] proportional memory of all processes
    def bytes = pids.sum { |pid| Culet::Processes::Memory.pss_bytes(pid) || 0 }

    private

    def pids = Culet::Processes::Tree.new(@pid).pids
  end
end
