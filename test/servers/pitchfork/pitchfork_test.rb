# frozen_string_literal: true

require "servers/server_helper"

# culet/pitchfork in a real Pitchfork: monitor, mold, workers, and workers that are promoted to molds.
class PitchforkTest < Minitest::Test
  include ServerHelper

  CONFIGURATION = File.expand_path("pitchfork.rb", __dir__)
  COMMAND = ["pitchfork", "-c", CONFIGURATION, ServerHelper::APPLICATION].freeze

  def test_molds_tidy_up_and_workers_give_memory_back
    with_pitchfork("OWN_HOOKS" => "1") do |server|
      first = workers(server, 2)
      first.each_value do |figures|
        assert figures["trim"]["active"]
        assert_operator figures["compactions"], :>=, 1, "the mold compacted its heap before it forked"
      end
      assert_match(/own mold hook, 0 compactions/, server.output, "the file's own hook comes first")
      waste_and_wait_in_workers(server, 2)
      assert_match(/own request hook/, server.output)
      refork(server, first.keys)
      waste_and_wait_in_workers(server, 2)
    end
  end

  # The first mold's alone: those that follow have served real ones.
  def test_the_first_mold_asks_for_pages
    with_pitchfork("OWN_HOOKS" => "1", "WARM" => "/warm /warm") do |server|
      first = workers(server, 2)
      first.each_value { |figures| assert_equal [2, true], [figures["warmed"].size, figures["compactions"].positive?] }
      assert_equal 1, first.each_value.flat_map { |figures| figures["warmed"] }.uniq.size
      assert_match(/own mold hook, 0 compactions, 2 requests/, server.output, "requests come before the file's own hook")
      refork(server, first.keys)
      assert_match(/own mold hook, [1-9]\d* compactions, 2 requests/, server.output)
    end
  end

  def test_a_trim_that_waits_is_made_between_two_requests
    with_pitchfork("CULET_TRIM" => "background,interval=60") do |server|
      assert_settles("each worker has trimmed for the first time") do
        at_once(server, "/collect", 8)
        workers(server, 2).each_value.all? { |figures| figures["trim"]["trims"].positive? }
      end
      waste_and_wait_in_workers(server, 2)
    end
  end

  private

  def with_pitchfork(env = {})
    with_server(*COMMAND, env: env) do |server|
      yield server
      # Pitchfork's own middle process between mold and worker is told as reaped; everything else is none of these.
      assert_empty server.output.scan(/^.*(?:warn|error|fatal|culet:).*$/i)
    end
  end

  # A worker becomes the mold of the next generation. Pitchfork drops the request where it cannot take its lock at once.
  def refork(server, before)
    asked = 0
    assert_settles(-> { "workers of the next generation answer: #{server.output}" }) do
      Process.kill("USR2", server.pid) if server.output.scan("own mold hook").size < 2 && (asked += 1) % 50 == 1
      !workers(server, 2).keys.intersect?(before)
    end
    assert_operator server.output.scan("own mold hook").size, :>=, 2
  end
end
