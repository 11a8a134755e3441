# frozen_string_literal: true

require "net/http"
require "tempfile"
require "tmpdir"
require "culet/allocators"
require "culet/tools/compare"

module Bench
  # A server of `culet compare` that answers a number of requests, with settings of culet.
  class BuiltInServer
    CONNECTIONS = 5
    START_SECONDS = 180
    GRACE_SECONDS = 60
    CALLGRIND = %w[valgrind --tool=callgrind].freeze

    # @param name [String] of the workload
    # @param requests [Integer] that are measured
    def initialize(name, requests:, allocator:)
      @workload = Culet::Compare::Workload.built_in(name)
      @workload.prepare(log: $stderr)
      @requests = requests
      @choice = Culet::Allocators.parse(allocator)
    end

    # @param settings [Hash{String => String, nil}] variables of the server
    # @return [Hash{String => Numeric}] by metric, after half as many requests: seconds of a request, bytes
    # @raise [Culet::Error] when it fails
    def call(settings)
      serve(settings) do |port, pid|
        load(port, @requests / 2)
        before = Culet::Processes::Cpu.exact_seconds(pid)
        load(port, @requests)
        { "CPU time" => (Culet::Processes::Cpu.exact_seconds(pid) - before) / @requests,
          "peak RSS" => Culet::Processes::Memory.peak_rss_bytes(pid) }
      end
    end

    # @return [Float] instructions of a request: a run with requests less one without
    # @raise [Culet::Error] when it fails
    def instructions(settings)
      idle, busy = [CONNECTIONS, CONNECTIONS + @requests].map do |requests|
        Tempfile.create("culet-bench") do |counts|
          serve(settings, [*CALLGRIND, "--callgrind-out-file=#{counts.path}"]) { |port| load(port, requests) }
          Integer(counts.read[/^totals: (\d+)/, 1] || raise(Culet::Error, "callgrind counted nothing"))
        end
      end
      (busy - idle).fdiv(@requests)
    end

    private

    # @return [Object] the block's value
    def serve(settings, prefix = [])
      Dir.mktmpdir("culet-bench") do |folder|
        port = Culet::Compare::LoadTarget.free_port
        environment = @workload.environment(@choice, port: port, directory: folder).merge(settings).compact
        child = Culet::Benchmark::Child.new(command: [*prefix, *@workload.command], environment: environment)
        target = Culet::Compare::LoadTarget.local(port)
        Bench.await_server(child, START_SECONDS) { target.answers? }
        yield port, child.pid
      ensure
        child&.stop(grace_seconds: GRACE_SECONDS)
      end
    end

    def load(port, requests)
      Array.new(CONNECTIONS) do |number|
        Thread.new { request(port, (requests + number) / CONNECTIONS) }
      end.each(&:value)
    rescue SystemCallError, IOError, Timeout::Error => e
      raise Culet::Error, "#{@workload.name} does not answer: #{e.message}"
    end

    # Puma 8.0 resets a connection's buffer after it has passed the connection on: another thread, which writes the next
    # answer there, loses the start of it now and then. Such a connection is replaced.
    def request(port, requests)
      left = requests
      Net::HTTP.start("127.0.0.1", port, read_timeout: START_SECONDS) do |http|
        while left.positive?
          left -= 1
          answer = http.get("/")
          raise Culet::Error, "#{@workload.name} answered #{answer.code}" if answer.code.to_i >= 400
        end
      end
    rescue Net::HTTPBadResponse
      requests = left
      retry
    end
  end
end
