# frozen_string_literal: true

require "net/http"
require "tmpdir"
require "culet/allocators"
require "culet/tools/compare"

module Bench
  # A server of `culet compare` that answers a number of requests, with settings of culet.
  class BuiltInServer
    CONNECTIONS = 5
    START_SECONDS = 180
    # callgrind counts from the first instruction to the last.
    CALLGRIND = %w[valgrind --tool=callgrind --callgrind-out-file=/dev/null].freeze

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
      serve(settings, []) do |port, pid|
        load(port, @requests / 2)
        before = cpu(pid)
        load(port, @requests)
        { "CPU time" => (cpu(pid) - before) / @requests, "peak RSS" => peak(pid) }
      end.first
    end

    # @return [Float] instructions of a request: a run with requests less one without
    # @raise [Culet::Error] when it fails
    def instructions(settings)
      idle, busy = [CONNECTIONS, CONNECTIONS + @requests].map do |requests|
        log = serve(settings, CALLGRIND) { |port| load(port, requests) }.last
        Integer(log[/Collected : (\d+)/, 1] || raise(Culet::Error, "callgrind counted nothing: #{log.lines.last}"))
      end
      (busy - idle).fdiv(@requests)
    end

    private

    # @return [Array(Object, String)] the block's value, and the server's output
    def serve(settings, prefix)
      Dir.mktmpdir("culet-bench") do |folder|
        port = Culet::Compare::LoadTarget.free_port
        log = File.join(folder, "log")
        environment = @workload.environment(@choice, port: port, directory: folder).merge(settings).compact
        pid = spawn(environment, *prefix, *@workload.command, in: File::NULL, %i[out err] => log, unsetenv_others: true)
        begin
          await(port, pid, log)
          value = yield port, pid
        ensure
          finish(pid)
        end
        [value, File.read(log)]
      end
    end

    def finish(pid)
      Process.kill(:TERM, pid)
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil # it has ended, and was waited for
    end

    def await(port, pid, log)
      target = Culet::Compare::LoadTarget.local(port)
      answers = Bench.await(START_SECONDS) { target.answers? || (break if Process.wait(pid, Process::WNOHANG)) }
      return if answers

      raise Culet::Error, "#{@workload.name} did not start: #{File.read(log).lines.last.to_s.strip}"
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

    # In nanoseconds in /proc; a thread that ended is missing, and Puma keeps its threads.
    def cpu(pid)
      Dir["/proc/#{pid}/task/*/schedstat"].sum { |path| File.read(path).to_i } / 1e9
    end

    def peak(pid) = File.read("/proc/#{pid}/status")[/^VmHWM:\s+(\d+)/, 1].to_i * 1024
  end
end
