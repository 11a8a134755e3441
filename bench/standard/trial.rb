# frozen_string_literal: true

require "json"
require "tmpdir"

module StandardBench
  # One run of one program under one contender.
  class Trial
    # Seconds a server has to answer first.
    START_SECONDS = 10

    # @param measure [String] path of the program that measures
    def initialize(program:, contender:, builder:, measure:)
      @program = program
      @contender = contender
      @builder = builder
      @measure = measure
      @failed = nil
    end

    # @return [Bench::Outcome]
    def run
      Dir.mktmpdir("culet-standard") do |folder|
        @folder = folder
        misled || measured
      end
    end

    private

    def failure(reason) = Bench::Outcome.new(nil, reason)

    # @return [Bench::Outcome, nil] a failure where the program calls another malloc
    def misled
      file = Malloc.file(environment.merge("LD_PRELOAD" => preload), words(@program.command).first)
      return if file && @contender.serves?(file)

      failure("the preload did not take: malloc is that of #{file || "no library"}")
    end

    def words(command) = Program.words(command, built: @builder.built, sources: @builder.sources, folder: @folder)

    # The program that measures runs without the preload, so that its memory is no part of the figures.
    def environment = @environment ||= @contender.environment.merge(@program.environment, "LD_PRELOAD" => nil)

    # libc by name for a contender without a library: a program may be linked with another allocator, as Debian's
    # redis-server is with jemalloc.
    def preload = @contender.environment["LD_PRELOAD"] || Malloc.libc

    def measured
      file = File.join(@folder, "figures")
      command = [@measure, file, "env", "LD_PRELOAD=#{preload}", *words(@program.command)]
      ended = Bench::Execution.call(environment, command, timeout: @program.timeout, directory: @folder) do
        @load = load if @program.client
      end
      return failure(@failed) if @failed
      return failure(ended.failure) unless ended.success?

      outcome(JSON.parse(File.read(file)), @load || ended.out)
    end

    def outcome(figures, text)
      rate = @program.rate
      time = rate ? rate.time(text) : figures.fetch("wall_seconds")
      return failure("it printed no rate") unless time

      cpu = figures.fetch("cpu_seconds")
      cpu = cpu * time / rate.seconds if rate&.seconds
      Bench::Outcome.new({ "time_seconds" => time, "cpu_seconds" => cpu,
                           "peak_rss_bytes" => figures.fetch("peak_rss_bytes") }, nil)
    end

    # Puts load on the server, then ends it.
    #
    # @return [String] the client's output
    def load
      unless Bench.await(START_SECONDS) { redis("ping") }
        @failed = "it did not answer within #{START_SECONDS} s"
        return ""
      end
      ended = Bench::Execution.call({ "LD_PRELOAD" => nil }, words(@program.client), timeout: @program.timeout)
      @failed = "the client failed: #{ended.failure}" unless ended.success?
      ended.out
    ensure
      redis("shutdown", "nosave")
    end

    def redis(*words)
      system({ "LD_PRELOAD" => nil }, "redis-cli", "-s", File.join(@folder, "socket"), *words,
             out: File::NULL, err: File::NULL)
    end
  end
end
