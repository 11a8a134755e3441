# frozen_string_literal: true

require "rbconfig"

module Limits
  # A Ruby program with the agent, and with culet/limit or without, and with a black box or without.
  class Program
    # The threads of culet/limit and of the black box.
    THREADS = %w[culet-limit culet-blackbox].freeze
    # Time to start, in seconds.
    WARM_UP = 1.0

    # @param code [String]
    # @param limit [String, nil] nil: without culet/limit
    # @param box [String, nil] the folder of the black box
    def initialize(code, limit:, box: nil)
      @part = limit ? "culet/limit" : "culet/agent"
      @environment = { "CULET_LIMIT" => limit, "CULET_BLACKBOX" => box, "RUBYOPT" => nil }
      @code = "puts; $stdout.flush; #{code}"
    end

    # @yieldparam [Program] while it runs
    # @return [Object] the block's value
    def run
      IO.pipe do |reader, writer|
        @pid = spawn(@environment, RbConfig.ruby, "-I#{Bench::ROOT}/lib", "-r#{@part}", "-e", @code, out: writer)
        writer.close
        raise Culet::Error, "the program did not start" unless reader.gets

        sleep WARM_UP
        yield self
      ensure
        Process.kill(:KILL, @pid)
        Process.wait(@pid)
      end
    end

    # @param seconds [Integer]
    # @return [Float] processor time of these threads, in percent of one processor
    def cpu_percent(seconds)
      before = nanoseconds
      sleep(seconds)
      (nanoseconds - before) / 1e7 / seconds
    end

    # @return [Integer]
    def private_bytes
      Culet::Processes::Memory.rollup(@pid).fetch("private_bytes")
    end

    private

    # The first number of schedstat: time on a processor.
    def nanoseconds
      Dir.glob("/proc/#{@pid}/task/*").sum do |task|
        THREADS.include?(File.read("#{task}/comm").chomp) ? File.read("#{task}/schedstat").to_i : 0
      end
    end
  end
end
