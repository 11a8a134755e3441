# frozen_string_literal: true

require "socket"
require_relative "processes"

module Bench
  # A Ruby program that forks workers, which share a heap.
  class Cluster
    # Time for the workers to start, in seconds.
    WARM_UP = 3.0

    # @return [Integer] the parent's process number
    attr_reader :pid

    # @param library [String] that the program requires
    # @param begins [String] what the parent does first, as Ruby; `port` is its own
    # @param worker [String] what a worker does, as Ruby; `kept` is the shared heap, an Array
    # @param megabytes [Integer] of the shared heap
    def initialize(library, begins:, worker:, workers:, megabytes:)
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      @library = library
      @code = <<~RUBY
        port = #{@port}
        #{begins}
        kept = Array.new(#{megabytes * 1000}) { "x" * 1000 }
        3.times { GC.start }
        #{workers}.times { fork { #{worker} } }
        puts
        $stdout.flush
        sleep
      RUBY
    end

    # @yieldparam [Cluster] while it runs
    # @return [Object] the block's value
    def run
      Processes.beside({ "CULET_METRICS" => nil }, "-rsocket", "-r#{@library}", "-e", @code, rest: WARM_UP) do |pid|
        @pid = pid
        yield self
      end
    end

    private

    def pids = Culet::Processes::Tree.new(@pid).pids

    def thread_seconds(pattern) = Processes.thread_seconds(pids, pattern)
  end
end
