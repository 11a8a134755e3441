# frozen_string_literal: true

require "net/http"
require "culet/system/clock"

# HTTP load by a number of requests, see docs/decisions/benchmarks.md. Every worker gets its
# share: a worker that has had enough loses its connections, and their successors reach another one.
class Client
  TIMEOUT_SECONDS = 120
  ADDRESS = "/measured" # of config.ru
  # Times the number of requests, for the last worker to get its share.
  MOST = 20

  # @param port [Integer] on 127.0.0.1
  # @param requests [Integer] how many in all
  # @param connections [Integer] how many at once
  # @param workers [Integer] how many processes answer, each of them at least requests / workers times
  def initialize(port:, requests:, connections:, workers: 1)
    @port = port
    @connections = connections
    @workers = workers
    @share = (requests + workers - 1) / workers
    @most = requests * MOST
    @served = Hash.new(0)
    @lock = Mutex.new
  end

  # Worker's process number => requests that it answered
  attr_reader :served

  # @return [Float] seconds it took
  # @raise [RuntimeError] when a request is answered by anything but 200, or a worker does not get its share
  def run
    started = Culet::Clock.now
    threads = Array.new(@connections) { Thread.new { serve until done? } }
    threads.each { |thread| thread.report_on_exception = false }
    threads.each(&:join)
    Culet::Clock.now - started
  end

  private

  def done?
    @lock.synchronize do
      if @served.values.sum > @most
        raise "of #{@workers} workers, some did not get #{@share} requests: #{@served.inspect}"
      end

      @served.count { |_, requests| requests >= @share } >= @workers
    end
  end

  # One connection, for as long as its worker needs requests.
  def serve
    Net::HTTP.start("127.0.0.1", @port, nil, open_timeout: TIMEOUT_SECONDS, read_timeout: TIMEOUT_SECONDS) do |http|
      loop do
        answer = http.get(ADDRESS)
        raise "a request was answered with status #{answer.code}" unless answer.code == "200"
        break if enough?(answer["x-worker"])
      end
    end
  end

  def enough?(worker) = @lock.synchronize { (@served[worker] += 1) >= @share }
end
