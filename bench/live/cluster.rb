# frozen_string_literal: true

require "net/http"
require "rbconfig"
require "socket"
require "culet/system/processes"

module LiveBench
  # Forked workers that answer HTTP requests on one port, with culet/agent; and clients that count their failures.
  class Cluster
    # Time for the workers to start, in seconds.
    WARM_UP = 3.0
    # Requests of one client per second: the workers are to be busy, the machine is not.
    PACE = 20
    CLIENTS = 4
    # The thread that answers, as the kernel knows its name.
    THREAD = "culet-agent"
    CODE = <<~RUBY
      server = TCPServer.new("127.0.0.1", ARGV[0].to_i)
      server.listen(512)
      kept = Array.new(ARGV[2].to_i * 1000) { "x" * 1000 }
      3.times { GC.start }
      ARGV[1].to_i.times do
        fork do
          loop do
            client = server.accept
            nil until client.gets == "\\r\\n"
            kept[rand(kept.size)] = Array.new(500) { |index| index.to_s * 20 }.join
            client.write("HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
            client.close
          end
        end
      end
      puts
      $stdout.flush
      sleep
    RUBY
    private_constant :WARM_UP, :PACE, :CLIENTS, :THREAD, :CODE

    # @return [Integer] the parent's process number
    attr_reader :pid

    # @param workers [Integer]
    # @param megabytes [Integer] of the heap that workers share
    def initialize(workers:, megabytes:)
      @workers = workers
      @megabytes = megabytes
      @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    end

    # @yieldparam [Cluster] while it runs
    # @return [Object] the block's value
    def run
      IO.pipe do |reader, writer|
        @pid = spawn({ "RUBYOPT" => nil }, RbConfig.ruby, "-I#{Bench::ROOT}/lib", "-rsocket", "-rculet/agent", "-e",
                     CODE, *[@port, @workers, @megabytes].map(&:to_s), out: writer, pgroup: true)
        writer.close
        raise Culet::Error, "the program did not start" unless reader.gets

        sleep WARM_UP
        yield self
      end
    ensure
      stop if @pid
    end

    # Requests while the block runs.
    #
    # @return [Array(Integer, Integer)] answered and failed
    def load
      done = false
      clients = Array.new(CLIENTS) { Thread.new { requests { done } } }
      yield
      done = true
      clients.map(&:value).transpose.map(&:sum)
    end

    # @return [Float] CPU seconds of the agents so far
    def agent_seconds
      Culet::Processes::Tree.new(@pid).pids.sum do |pid|
        Dir.glob("/proc/#{pid}/task/*").sum do |folder|
          File.read("#{folder}/comm").chomp == THREAD ? File.read("#{folder}/schedstat").to_i : 0
        end
      end / 1e9
    end

    private

    def requests
      answered = failed = 0
      until yield
        get ? answered += 1 : failed += 1
        sleep 1.0 / PACE
      end
      [answered, failed]
    end

    def get
      Net::HTTP.get(URI("http://127.0.0.1:#{@port}/")) == "ok"
    rescue SystemCallError, IOError, Net::ProtocolError
      false
    end

    def stop
      ::Process.kill(:KILL, -@pid)
      ::Process.wait(@pid)
    end
  end
end
