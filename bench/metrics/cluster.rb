# frozen_string_literal: true

require "net/http"
require "rbconfig"
require "socket"
require "culet/system/processes"

module MetricsBench
  # A Ruby program that forks workers, with culet/metrics or without.
  class Cluster
    # The threads of culet/metrics, as the kernel knows their names.
    THREAD = /\Aculet-metrics/
    # Time for the workers to start, in seconds.
    WARM_UP = 3.0
    CODE = { "idle" => "sleep", "busy" => "loop { Array.new(2_000) { +'x' * 100 }; sleep 0.05 }" }.freeze

    # What one scrape took.
    Scrape = Struct.new(:seconds, :bytes, :samples)

    # @param kind [String] a key of CODE: what a worker does
    # @param workers [Integer]
    # @param megabytes [Integer] of the heap that workers share
    # @param metrics [Boolean]
    def initialize(kind, workers:, megabytes:, metrics:)
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      @code = <<~RUBY
        #{"Culet::Metrics.start(#{@port})" if metrics}
        $kept = Array.new(#{megabytes * 1000}) { 'x' * 1000 }
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
      IO.pipe do |reader, writer|
        @pid = spawn({ "RUBYOPT" => nil, "CULET_METRICS" => nil }, RbConfig.ruby, "-I#{Bench::ROOT}/lib",
                     "-rculet/metrics", "-e", @code, out: writer, pgroup: true)
        writer.close
        raise Culet::Error, "the program did not start" unless reader.gets

        sleep WARM_UP
        yield self
      end
    ensure
      stop if @pid
    end

    # @return [Scrape]
    def scrape
      start = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
      text = Net::HTTP.get(URI("http://127.0.0.1:#{@port}/metrics"))
      seconds = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC) - start
      Scrape.new(seconds, text.bytesize, text.scan(/^ruby_gc_time/).size)
    end

    # @return [Float] CPU seconds of all threads of culet/metrics so far
    def cpu_seconds
      pids.sum do |pid|
        Dir.glob("/proc/#{pid}/task/*").sum do |folder|
          next 0 unless THREAD.match?(File.read("#{folder}/comm"))

          File.read("#{folder}/schedstat").to_i
        end
      end / 1e9
    end

    # @return [Integer] proportional memory of all processes
    def bytes = pids.sum { |pid| Culet::Processes::Memory.pss_bytes(pid) || 0 }

    private

    def pids = Culet::Processes::Tree.new(@pid).pids

    def stop
      ::Process.kill(:KILL, -@pid)
      ::Process.wait(@pid)
    end
  end
end
