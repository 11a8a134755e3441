# frozen_string_literal: true

require "net/http"
require "culet/system/clock"

module Limits
  # Requests of four clients, each of which waits a moment after an answer.
  class Load
    CLIENTS = 4
    PAUSE = 0.02
    OPTIONS = { open_timeout: 30, read_timeout: 30, max_retries: 0 }.freeze
    # Between two looks at the usage, in seconds.
    LOOK = 0.25
    # Share of the limit below which throughput counts.
    BELOW = 0.85

    def initialize(port, group)
      @port = port
      @group = group
      @lock = Mutex.new
      @answered = @number = @below = 0
      @below_seconds = @longest = @peak = 0.0
      @failures = []
    end

    def run(seconds)
      @deadline = Culet::Clock.now + seconds
      clients = Array.new(CLIENTS) { Thread.new { client } }
      watch
      clients.each(&:join)
      self
    end

    def figures
      { failed: @failures.size, first_failure: @failures.first, answered: @answered, longest: @longest, peak: @peak,
        rate: @below_seconds.zero? ? nil : @below / @below_seconds }
    end

    private

    def client
      while Culet::Clock.now < @deadline
        number = @lock.synchronize { @number += 1 }
        request(number)
        sleep PAUSE
      end
    end

    def request(number)
      began = Culet::Clock.now
      response = Net::HTTP.start("127.0.0.1", @port, **OPTIONS) do |http|
        http.get("/#{number}", "connection" => "close")
      end
      raise IOError, "status #{response.code}" unless response.is_a?(Net::HTTPOK)

      took = Culet::Clock.now - began
      @lock.synchronize do
        @answered += 1
        @longest = [@longest, took].max
      end
    rescue SystemCallError, IOError, Timeout::Error, Net::HTTPBadResponse => e
      @lock.synchronize { @failures << "#{e.class}: #{e.message}" }
    end

    # Counts the answers of the time in which the usage was below.
    def watch
      share = @group.used_share
      while Culet::Clock.now < @deadline
        before = share
        began = Culet::Clock.now
        answered = @answered
        sleep LOOK
        share = @group.used_share
        @peak = [@peak, share].max
        next if [before, share].max >= BELOW

        @below += @answered - answered
        @below_seconds += Culet::Clock.now - began
      end
    end
  end
end
