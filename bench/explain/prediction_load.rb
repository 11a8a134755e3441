# frozen_string_literal: true

require "socket"
require "tmpdir"
require "culet/system/clock"
require_relative "../../test/servers/sidekiq/redis_server"

# Loads of a known pace: what one process delays, it makes up for, so that two runs of a program do the same.
module PredictionLoad
  # Calls a block at a pace in threads of its own.
  class Paced
    # @return [Float] seconds between two calls of a thread
    attr_accessor :pause

    # @param pause [Float] seconds between two calls of a thread
    def initialize(threads, pause)
      @threads = threads
      @pause = pause
      @done = 0
      @lock = Mutex.new
    end

    # Ruby variables of the program that it is the load of.
    def environment = {}

    def start = @running = Array.new(@threads) { Thread.new { repeat } }

    def stop = @running&.each(&:kill)&.each(&:join)

    private

    def repeat
      due = Culet::Clock.now
      loop do
        call(@lock.synchronize { @done += 1 })
        due += @pause
        sleep([due - Culet::Clock.now, 0].max)
      end
    end
  end

  # HTTP requests, as of a proxy that has TLS, each by a connection of its own, so that all workers serve.
  class Requests < Paced
    # @param port [Integer] on 127.0.0.1
    def initialize(port, paths, *pace)
      super(*pace)
      @port = port
      @paths = paths
      @seconds = []
    end

    # @return [Boolean] whether the server answers
    def ready? = request(0)

    # @return [Array<Float>] what each request took since the last call, in seconds
    def take_seconds = @lock.synchronize { @seconds.slice!(0..) }

    private

    def call(number)
      started = Culet::Clock.now
      request(number)
      @lock.synchronize { @seconds << (Culet::Clock.now - started) }
    end

    def request(number)
      path = @paths[number % @paths.size]
      TCPSocket.open("127.0.0.1", @port) do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Proto: https\r\n" \
                     "Connection: close\r\n\r\n")
        socket.read.match?(%r{\AHTTP/1\.1 [23]})
      end
    rescue SystemCallError, IOError
      false
    end
  end

  # Jobs of Sidekiq, with a Redis of their own.
  class Jobs < Paced
    def initialize(*pace)
      super
      @folder = Dir.mktmpdir
      @redis = RedisServer.new(@folder)
      @socket = @redis.url.delete_prefix("unix://")
    end

    def environment = { "REDIS_URL" => @redis.url }

    # @return [Boolean] whether Sidekiq has taken a job
    def ready?
      call(1) unless @asked
      @asked = true
      redis("LLEN", "queue:default") == ":0\r\n"
    end

    def stop
      super
      @redis.stop
      FileUtils.rm_rf(@folder)
    end

    private

    def call(number)
      job = { class: "PageJob", args: [number], jid: format("%024x", number), queue: "default", retry: false,
              created_at: Time.now.to_f, enqueued_at: Time.now.to_f }
      redis("LPUSH", "queue:default", JSON.generate(job))
    end

    def redis(*words)
      UNIXSocket.open(@socket) do |connection|
        connection.write("*#{words.size}\r\n#{words.map { |word| "$#{word.bytesize}\r\n#{word}\r\n" }.join}")
        connection.gets
      end
    end
  end
end
