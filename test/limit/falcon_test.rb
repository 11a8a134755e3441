# frozen_string_literal: true

require "limit/limit_helper"
require "servers/server_helper"
require "culet/tools/autopsy"

# A real Falcon that leaks, in a real control group.
class LimitFalconTest < Minitest::Test
  include LimitHelper
  include ServerHelper

  COMMAND = ["falcon", "host", File.expand_path("falcon.rb", __dir__)].freeze
  RESTART = /^culet: limit .+: restart \(worker (\d+) with [\d.]+ MB of private memory ends when its requests/

  def test_workers_that_leak_end_without_losing_a_request
    with_limited_server(200, *COMMAND, env: { "INTERVAL" => "2", "BYTES" => "1200000" }) do |server|
      seen = request_until_two_restarts(server)
      ended = server.output.scan(RESTART).flatten
      assert_equal ended.uniq, ended, "each worker once"
      assert_operator seen.uniq.size, :>=, 3, "a new worker serves"
      assert_operator server.output.index("collection ("), :<, server.output.index("restart ("), "the steps before it"
      assert_settles("two workers serve") { server.processes.size == 3 && !server.processes.intersect?(ended.map(&:to_i)) }
      stop(server)
    end
  end

  def test_requests_have_labels_in_the_black_box
    folder = new_folder
    env = { "INTERVAL" => "60", "BYTES" => "1", "CULET_BLACKBOX" => folder, "CULET_LIMIT" => "off" }
    with_server(*COMMAND, env: env) do |server|
      server.get("/leak")
      assert_settles("a black box has the request") { labels(folder).include?("endpoint=GET /leak") }
    end
  end

  private

  # Falcon loses a signal that comes while it replaces a worker.
  def stop(server)
    assert_settles("Falcon ends") { server.stop(seconds: 1) }
  end

  def labels(folder)
    Dir.glob("#{folder}/*.blackbox").flat_map { |path| Culet::Autopsy::Box.load(path).events.map(&:label) }
  end

  def bundle = super("falcon/Gemfile")

  # Each request has a connection of its own, or is one of three on the same.
  #
  # @return [Array<String>] processes that have answered
  def request_until_two_restarts(server)
    seen = []
    assert_settles(-> { "two restarts, not #{server.output}" }) do
      bodies = at_once(server, "/leak", 3) + on_one_connection(server, 3)
      bodies.each { |body| assert_match(/\A\d+\z/, body) }
      seen |= bodies
      server.output.scan(RESTART).size >= 2 && (seen - server.output.scan(RESTART).flatten).any?
    end
    seen
  end

  def on_one_connection(server, count)
    Net::HTTP.start("127.0.0.1", server.port, open_timeout: 60, read_timeout: 60) do |http|
      http.max_retries = 0
      Array.new(count) { http.get("/leak").body }
    end
  end
end
