# frozen_string_literal: true

require "rbconfig"
require "socket"
require "culet/system/processes"

module Bench
  # A Ruby program that forks workers, which share a heap.
  class Cluster
    # Time for the workers to start, in seconds.
    WARM_UP = 3.0
    private_constant :WARM_UP

    # @return [Integer] the parent's process number
    attr_reader :pid

    # @param library [String] that the program requires
    # @param begins [String] what the parent does first, as Ruby; `port` is its own
    # @param worker [String] what a worker does, as Ruby; `kept` is the shared heap, an Array
    # @param workers [Integer]
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
      IO.pipe do |reader, writer|
        @pid = spawn({ "RUBYOPT" => nil, "CULET_METRICS" => nil }, RbConfig.ruby, "-I#{ROOT}/lib", "-rsocket",
                     "-r#{@library}", "-e", @code, out: writer, pgroup: true)
        writer.close
        raise Culet::Error, "the program did not start" unless reader.gets

        sleep WARM_UP
        yield self
      end
    ensure
      stop if @pid
    end

    private

    def pids = Culet::Processes::Tree.new(@pid).pids

    # CPU seconds so far of the threads whose name, as the kernel knows it, matches.
    def thread_seconds(name)
      pids.sum do |pid|
        Dir.glob("/proc/#{pid}/task/*").sum do |folder|
          name.match?(File.read("#{folder}/comm").chomp) ? File.read("#{folder}/schedstat").to_i : 0
        end
      end / 1e9
    end

    def stop
      ::Process.kill(:KILL, -@pid)
      ::Process.wait(@pid)
    end
  end
end
