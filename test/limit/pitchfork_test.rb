# frozen_string_literal: true

require "limit/limit_helper"
require "servers/server_helper"

# A real Pitchfork that leaks, in a real control group.
class LimitPitchforkTest < Minitest::Test
  include LimitHelper
  include ServerHelper

  COMMAND = ["pitchfork", "-c", File.expand_path("pitchfork.rb", __dir__), File.expand_path("leak.ru", __dir__)].freeze
  RESTART = /^culet: limit .+: restart \(worker (\d+) with [\d.]+ MB of private memory ends/

  def test_workers_that_leak_end_after_a_request
    with_limited_server(250, *COMMAND, env: { "INTERVAL" => "2", "BYTES" => "600000" }) do |server|
      assert_settles(-> { "two restarts, not #{server.output}" }) do
        at_once(server, "/leak", 2).each { |body| assert_match(/\A\d+\z/, body) }
        server.output.scan(RESTART).size >= 2
      end
      ended = server.output.scan(RESTART).flatten
      assert_equal ended.uniq, ended, "each worker once"
    end
  end
end
