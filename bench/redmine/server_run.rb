# frozen_string_literal: true

require "json"
require "tmpdir"
require "culet/tools/compare"
require_relative "client"
require_relative "pages"

# One server from its start to its end.
class ServerRun
  START_SECONDS = 300
  GRACE_SECONDS = 20
  WORKERS = 3 # of puma.rb
  # Puma looks for plugins in both.
  LIBRARIES = [File.expand_path("../../lib", __dir__), __dir__].join(":")

  # @param requests [Integer]
  # @param connections [Integer]
  def initialize(contender:, requests:, connections:)
    @contender = contender
    @choice = contender.choice
    @requests = requests
    @connections = connections
    @port = Culet::Compare::LoadTarget.free_port
  end

  # @return [Hash{String => Numeric}] the figures
  # @raise [RuntimeError, Culet::Error] when the server fails
  def call
    Dir.mktmpdir do |directory|
      @snapshot = File.join(directory, "pages")
      @warmup = File.join(directory, "warmup")
      @child = Culet::Benchmark::Child.new(command: ["puma", "-C", "#{__dir__}/puma.rb", "#{__dir__}/config.ru"],
                                           environment: environment)
      target = Culet::Compare::LoadTarget.local(@port)
      Bench.await_server(@child, START_SECONDS) { target.answers? }
      serve
    ensure
      @child&.stop(grace_seconds: GRACE_SECONDS)
    end
  end

  private

  def environment
    base = ENV.to_h
    pages = @contender.single? ? {} : { "MEASURED_PAGES" => @snapshot, "MEASURED_WARMUP" => @warmup }
    base.merge(@choice.environment(base, isolated: true), "RUBYLIB" => LIBRARIES,
               "MEASURED_MODE" => @contender.mode, "PORT" => @port.to_s, **pages).compact
  end

  def serve
    before = cpu
    client = Client.new(port: @port, requests: @requests, connections: @connections,
                        workers: @contender.single? ? 1 : WORKERS)
    seconds = client.run
    used = cpu - before
    pids = @child.descendants.refresh
    check(pids, client)
    memory = pids.map { |pid| Culet::Processes::Memory.rollup(pid) }
    { "processes" => pids.size, "rss_bytes" => sum(memory, "rss_bytes"), "pss_bytes" => sum(memory, "pss_bytes"),
      "private_dirty_bytes" => sum(memory, "private_dirty_bytes"),
      "requests_per_second" => (client.served.values.sum / seconds).round(2),
      "cpu_per_request_seconds" => (used / client.served.values.sum).round(5),
      "served" => client.served.values.sort, **sharing(pids.drop(1)), **warmup }
  end

  # @return [Hash{String => Numeric}] what the warm-up cost, where there was one
  def warmup = File.exist?(@warmup) ? JSON.parse(File.read(@warmup)) : {}

  # A worker that was killed and forked anew has done little.
  def check(pids, client)
    serving = pids.size > 1 ? pids.drop(1) : pids
    raise "workers came and went under the load: #{client.served.inspect} served, #{serving.inspect} are there" unless
      client.served.keys.map(&:to_i).sort == serving.sort

    pids.each do |pid|
      libraries = Culet::Processes::Live.new(pid).mappings.filter_map(&:path)
      names = libraries.filter_map { |path| Culet::Allocators.of_library(path) }.uniq
      raise "process #{pid} runs on #{names.inspect}, not on #{@choice.name}" unless names == [@choice.name] - ["glibc"]
    end
  end

  def sum(memory, name) = memory.sum { |figures| figures.fetch(name) }

  def cpu = @child.descendants.refresh.sum { |pid| Culet::Processes::Cpu.seconds(pid) || 0.0 }

  # @return [Hash{String => Integer}] the mean of the workers
  def sharing(workers)
    return {} if workers.empty?

    before = Pages.load(@snapshot)
    all = workers.map { |pid| Pages.of(pid).since(before) }
    all.flat_map(&:keys).uniq.sort.to_h { |key| [key, all.sum { |counts| counts[key] } / all.size] }
  end
end
