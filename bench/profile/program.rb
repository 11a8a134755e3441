# frozen_string_literal: true

require "tmpdir"

module ProfileBench
  # One run of a built-in workload that is no server, from start to end.
  class Program
    TIMEOUT_SECONDS = 300

    # @param name [String] of the workload
    # @param scale [Float]
    # @param measure [String] path of the program that measures
    def initialize(name, scale:, measure:)
      @workload = Culet::Compare::Workload.built_in(name, scale: scale)
      @measure = measure
    end

    # @return [Hash{String => Numeric}] by metric: seconds, bytes
    # @raise [Culet::Error] when it fails
    def call(contender)
      Dir.mktmpdir("culet-profile-bench") do |folder|
        file = File.join(folder, "figures")
        own = contender.ruby_environment
        # What measures runs without the preload: its memory is no part of the figures.
        command = [@measure, file, "env", *own.slice("LD_PRELOAD", "RUBYOPT").map { |pair| pair.join("=") },
                   *@workload.command]
        environment = own.merge("LD_PRELOAD" => nil, "RUBYOPT" => nil, "CULET_WORKLOAD_DIR" => folder,
                                "CULET_SCALE" => scale)
        ended = Bench::Execution.call(environment, command, timeout: TIMEOUT_SECONDS)
        raise Culet::Error, "#{@workload.name} failed: #{ended.failure}" unless ended.success?

        figures = JSON.parse(File.read(file))
        { "CPU time" => figures.fetch("cpu_seconds"), "peak RSS" => figures.fetch("peak_rss_bytes") }
      end
    end

    private

    def scale = @workload.environment(Culet::Allocators.parse("culet")).fetch("CULET_SCALE")
  end
end
