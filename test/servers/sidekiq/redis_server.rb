# frozen_string_literal: true

require "fileutils"
require "socket"
require_relative "../../../lib/culet/system/clock"
require_relative "../../../lib/culet/system/executables"

# A Redis for one test, which nobody else can reach: it listens on a socket in a directory of its own and keeps nothing.
class RedisServer
  START_SECONDS = 120

  # Debian's package redis-server starts a service; redis-tools has the same program under the name of another.
  PROGRAMS = %w[redis-server redis-check-rdb valkey-server].freeze

  # @return [String, nil] the program's path
  def self.program = PROGRAMS.filter_map { |name| Culet::Executables.find(name) }.first

  # Tests with a Redis in a folder of their own.
  module Tests
    def setup
      super
      skip "there is no Redis; install the Debian package redis-tools or redis-server" unless RedisServer.program
      @directory = new_folder
      @redis = RedisServer.new(@directory)
    end

    def teardown
      @redis&.stop
      super
    end
  end

  # @param directory [String] for its socket
  def initialize(directory)
    @socket = File.join(directory, "redis.socket")
    # On an allocator of its own, whatever the caller runs on.
    @pid = Process.spawn({ "LD_PRELOAD" => nil }, [self.class.program, "redis-server"], "--port", "0", "--unixsocket", @socket, "--save", "",
                         "--appendonly", "no", "--dir", directory, in: File::NULL, out: File::NULL, pgroup: true)
    await
  end

  # @return [String] for REDIS_URL
  def url = "unix://#{@socket}"

  def stop
    Process.kill("KILL", @pid)
    Process.wait(@pid)
  end

  private

  def await
    deadline = Culet::Clock.now + START_SECONDS
    until answers?
      raise "Redis does not answer" if Culet::Clock.now > deadline

      sleep 0.02
    end
  rescue RuntimeError
    stop
    raise
  end

  def answers?
    UNIXSocket.open(@socket) do |socket|
      socket.write("PING\r\n")
      socket.gets == "+PONG\r\n"
    end
  rescue SystemCallError
    false
  end
end
