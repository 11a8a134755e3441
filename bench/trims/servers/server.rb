# frozen_string_literal: true

require "culet/allocators"
require "culet/tools/compare"
require "fileutils"
require "json"
require_relative "affinity"

module Servers
  # One of the two servers that are measured at the same time.
  class Server
    TRIMMED = ["-rculet/auto", "-r#{File.expand_path("trim_stats.rb", __dir__)}"].freeze
    MAJORS = File.expand_path("majors.rb", __dir__)
    START_SECONDS = 300
    GRACE_SECONDS = 30
    REST_SECONDS = 3 # between the last load and the reading of the memory

    # @param workload [String] a server of `culet compare`, or "majors"
    # @param trimmed [Boolean] whether with culet/auto
    # @param directory [String] for its files; must not exist
    def initialize(workload:, choice:, trimmed:, directory:)
      @name = workload
      @workload = self.class.workload(workload)
      @choice = choice
      @trimmed = trimmed
      @directory = directory
      @port = Culet::Compare::LoadTarget.free_port
      @target = Culet::Compare::LoadTarget.local(@port)
    end

    # @return [Culet::Compare::Workload] which installs the gems
    def self.workload(name)
      Culet::Compare::Workload.built_in(name == "majors" ? "rack" : name)
    end

    # Starts it and waits for its first answer.
    #
    # @raise [Culet::Error] when it does not answer
    def start
      FileUtils.mkdir_p(figures_directory)
      @child = Culet::Benchmark::Child.new(command: command, environment: environment, directory: @directory)
      Bench.await_server(@child, START_SECONDS) { @target.status == 200 }
    end

    # @param processors [Array(Integer, Integer)] of its processes from now on, and of the load
    # @return [Hash{String => Numeric}] of one stretch of load
    # @raise [Culet::Benchmark::Exclusion] when requests fail
    def load(seconds:, connections:, processors:)
      pids.each { |pid| Affinity.move(pid, processors.first) }
      before = cpu_seconds
      figures = Culet::Compare::Load.new(target: @target, seconds: seconds, connections: connections,
                                         prefix: Affinity.prefix(processors.last)).run
      { "requests_per_second" => figures.requests_per_second, "p50_seconds" => figures.p50_seconds,
        "p99_seconds" => figures.p99_seconds,
        "cpu_per_request_seconds" => (cpu_seconds - before) / figures.requests, "loaded_pss_bytes" => pss_bytes }
    end

    # @return [Hash{String => Integer}] its memory at rest
    def rest
      sleep(REST_SECONDS)
      { "rest_pss_bytes" => pss_bytes }
    end

    # Ends it.
    #
    # @return [Array<Hash>] trim statistics of its processes; empty without culet/auto
    def stop
      @child&.stop(grace_seconds: GRACE_SECONDS)
      Dir[File.join(figures_directory, "*.json")].map { |file| JSON.parse(File.read(file)) }
    end

    private

    def figures_directory = File.join(@directory, "figures")

    def command
      words = @workload.command
      @name == "majors" ? [*words[0..-2], MAJORS] : words
    end

    def environment
      own = @workload.environment(@choice, port: @port, directory: @directory)
      return own unless @trimmed

      own.merge("RUBYOPT" => [own["RUBYOPT"], *TRIMMED].compact.join(" "), "TRIM_FIGURES" => figures_directory,
                "RUBYLIB" => [File.expand_path("../../../lib", __dir__), own["RUBYLIB"]].compact.join(":"))
    end

    def pids = @child.descendants.refresh
    def cpu_seconds = pids.sum { |pid| Culet::Processes::Cpu.seconds(pid) || 0.0 }
    def pss_bytes = pids.sum { |pid| Culet::Processes::Memory.pss_bytes(pid) || 0 }
  end
end
