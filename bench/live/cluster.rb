# frozen_string_literal: true

require "net/http"
require_relative "../cluster"

module LiveBench
  # Forked workers that answer HTTP requests on one port, with culet/agent; and clients that count their failures.
  class Cluster < Bench::Cluster
    # Requests of one client per second: the workers are to be busy, the machine is not.
    PACE = 20
    CLIENTS = 4
    THREAD = /\Aculet-agent\z/
    BEGINS = <<~RUBY
      server = TCPServer.new("127.0.0.1", port)
      server.listen(512)
    RUBY
    WORKER = <<~RUBY
      loop do
        client = server.accept
        nil until client.gets == "\\r\\n"
        kept[rand(kept.size)] = Array.new(500) { |index| index.to_s * 20 }.join
        client.write("HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok")
        client.close
      end
    RUBY

    # @param megabytes [Integer] of the heap that workers share
    def initialize(workers:, megabytes:)
      super("culet/agent", begins: BEGINS, worker: WORKER, workers: workers, megabytes: megabytes)
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
    def agent_seconds = thread_seconds(THREAD)

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
  end
end
