# frozen_string_literal: true

require_relative "../processes"

module Limits
  # A Ruby program with the agent, and with culet/limit or without, and with a black box or without.
  class Program
    # The threads of culet/limit and of the black box.
    THREADS = /\Aculet-(?:limit|blackbox)\z/
    # Time to start, in seconds.
    WARM_UP = 1.0

    # @param limit [String, nil] nil: without culet/limit
    # @param box [String, nil] the folder of the black box
    def initialize(code, limit:, box: nil)
      @part = limit ? "culet/limit" : "culet/agent"
      @settings = { "CULET_LIMIT" => limit, "CULET_BLACKBOX" => box }
      @code = "puts; $stdout.flush; #{code}"
    end

    # @yieldparam [Program] while it runs
    # @return [Object] the block's value
    def run
      Bench::Processes.beside(@settings, "-r#{@part}", "-e", @code, rest: WARM_UP) do |pid|
        @pid = pid
        yield self
      end
    end

    # @return [Float] processor time of these threads, in percent of one processor
    def cpu_percent(seconds)
      before = thread_seconds
      sleep(seconds)
      (thread_seconds - before) * 100 / seconds
    end

    def private_bytes = Culet::Processes::Memory.rollup(@pid).fetch("private_bytes")

    private

    def thread_seconds = Bench::Processes.thread_seconds([@pid], THREADS)
  end
end
