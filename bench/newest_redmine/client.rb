# frozen_string_literal: true

require "net/http"

# HTTP load of a given amount of work: so many requests over so many connections, each of which sends its next request
# when the last one is answered. Unlike a load of given length, every contender gets the same work done, however busy
# the machine is.
class Client
  TIMEOUT_SECONDS = 120

  # @param port [Integer] on 127.0.0.1
  # @param requests [Integer] how many in all
  # @param connections [Integer] how many at once
  def initialize(port:, requests:, connections:)
    @port = port
    @connections = connections
    @tickets = Queue.new
    requests.times { |number| @tickets << number }
    @tickets.close
  end

  # @return [Float] seconds it took
  # @raise [RuntimeError] when a request is answered by anything but 200
  def run
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    threads = Array.new(@connections) { Thread.new { serve } }
    threads.each { |thread| thread.report_on_exception = false }
    threads.each(&:join)
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  end

  private

  def serve
    Net::HTTP.start("127.0.0.1", @port, nil, open_timeout: TIMEOUT_SECONDS, read_timeout: TIMEOUT_SECONDS) do |http|
      while @tickets.pop
        answer = http.get("/")
        raise "a request was answered with status #{answer.code}" unless answer.code == "200"
      end
    end
  end
end
