# frozen_string_literal: true

require "servers/server_helper"
require_relative "notify_socket"
require_relative "sidekiq/redis_server"

# A server under `culet run` tells its service manager that it is ready, alive and about to end, as the very process that
# was started: of others systemd takes nothing (NotifyAccess=main).
class NotifyTest < Minitest::Test
  include ServerHelper

  STARTED = ["sh", "-c", 'export WATCHDOG_PID=$$; exec "$@"', "sh"].freeze

  def setup
    @folder = new_folder
    @socket = NotifySocket.new(@folder)
  end

  def teardown = @socket.close

  def test_puma = assert_notifies("puma", "-C", "#{DIRECTORY}/puma/puma.rb", APPLICATION, env: { "WORKERS" => "1" })

  def test_sidekiq
    skip "there is no Redis; install the Debian package redis-tools or redis-server" unless RedisServer.program
    redis = RedisServer.new(@folder)
    assert_notifies("sidekiq", "-r", "#{DIRECTORY}/sidekiq/jobs.rb", env: { "REDIS_URL" => redis.url, "FIGURES" => "#{@folder}/figures" })
  ensure
    redis&.stop
  end

  private

  def assert_notifies(*command, env:)
    env = env.merge("NOTIFY_SOCKET" => @socket.path, "WATCHDOG_USEC" => "1000000")
    pid = nil
    with_server(*command, env: env, under: [*STARTED, *culet_command, "run", "--"], up: ->(_) { sent?("READY=1") }) do |server|
      pid = server.pid
      assert_includes File.read("/proc/#{pid}/maps"), "libculet.so"
      assert_settles("a sign of life") { sent?("WATCHDOG=1") }
    end
    assert sent?("STOPPING=1")
    assert_equal [pid], @socket.messages.map(&:last).uniq
  end

  def sent?(line) = @socket.messages.map(&:first).include?(line)
end
