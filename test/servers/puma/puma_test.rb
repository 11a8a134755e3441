# frozen_string_literal: true

require "servers/server_helper"

# `plugin :culet` in real Pumas: the newest, and with --all those of the years before.
module PumaTests
  include ServerHelper

  CONFIGURATION = File.expand_path("puma.rb", __dir__)
  COMMAND = ["puma", "-C", CONFIGURATION, ServerHelper::APPLICATION].freeze

  def test_a_single_process_gives_memory_back
    without = with_puma("PLUGIN" => "0") do |server|
      server.get("/garbage")
      server.get("/collect")
      assert_nil server.figures["trim"]
      server.figures["rss_bytes"]
    end
    with_puma do |server|
      figures = waste_and_wait(server)
      assert figures["trim"]["active"]
      assert_equal 0, figures["compactions"], "there is no fork to tidy up for"
      assert_operator figures["rss_bytes"], :<, without - (20 * ServerHelper::MEBIBYTE)
    end
  end

  def test_workers_share_what_was_tidied_up_and_give_memory_back
    with_puma("WORKERS" => "2", "PRELOAD" => "1") do |server|
      workers(server, 2).each_value do |figures|
        assert_operator figures["compactions"], :>=, 1, "the master compacted its heap before the fork"
        assert figures["trim"]["active"]
        assert_equal server.pid, figures["parent"]
      end
      waste_and_wait_in_workers(server, 2)
      Process.kill("KILL", victim = workers(server, 2).keys.first)
      assert_settles("another worker is there") { !workers(server, 2).key?(victim) }
      waste_and_wait_in_workers(server, 2)
    end
  end

  def test_the_master_asks_for_pages_before_the_files_own_hook
    with_puma("WORKERS" => "2", "PRELOAD" => "1", "OWN_HOOKS" => "1", "WARM" => "/warm /warm?again=1") do |server|
      workers(server, 2).each_value { |figures| assert_equal [server.pid] * 2, figures["warmed"], "both workers have what the master was asked for" }
      assert_match(/^own hook: 2 requests, 0 compactions$/, server.output, "requests come first, the tidying last")
    end
  end

  def test_the_master_says_what_a_killed_worker_held
    folder = new_folder
    with_server(*COMMAND, env: { "WORKERS" => "2", "CULET_BLACKBOX" => folder }, gems: bundle(self.class::GEMFILE)) do |server|
      Process.kill("KILL", victim = workers(server, 2).keys.first)
      assert_settles("a summary") { server.output.include?("more: culet autopsy") }
      lines = server.output.scan(/^culet: (.*)$/).flatten
      assert_equal 3, lines.size
      assert_match(/\Aprocess #{victim} \(.*\) was ended by SIGKILL/, lines[0])
      assert_match(/\Ait held [\d.]+ MB: /, lines[1])
      assert_match(%r{\Athe last one: endpoint=GET /}, lines[2])
    end
  end

  def test_a_page_that_fails_keeps_nobody_from_starting
    with_server(*COMMAND, env: { "WORKERS" => "2", "PRELOAD" => "1", "WARM" => "/fails /warm" }, gems: bundle(self.class::GEMFILE)) do |server|
      workers(server, 2).each_value { |figures| assert_equal [1, true], [figures["warmed"].size, figures["compactions"].positive?] }
      assert_equal ["culet: the request for https://localhost/fails failed: RuntimeError: on purpose"], server.output.scan(/^culet:.*$/)
    end
  end

  def test_where_no_page_can_be_asked_for_that_is_said
    with_server(*COMMAND, env: { "WORKERS" => "2", "WARM" => "/warm" }, gems: bundle(self.class::GEMFILE)) do |server|
      workers(server, 2).each_value { |figures| assert_empty figures["warmed"] }
      assert_equal ["culet: no requests are sent: Culet::Warmup.requests needs workers and preload_app!"], server.output.scan(/^culet:.*$/)
    end
  end

  def test_without_preloading_there_is_nothing_to_tidy_up
    with_puma("WORKERS" => "2") do |server|
      workers(server, 2).each_value { |figures| assert_equal [0, true], [figures["compactions"], figures["trim"]["active"]] }
    end
  end

  # The interval lets the first trim pass and holds up the second.
  def test_a_trim_that_waits_is_made_between_two_requests
    with_puma("CULET_TRIM" => "background,interval=60", "OWN_HOOKS" => "1") do |server|
      server.get("/collect")
      assert_settles("the first trim") { server.figures["trim"]["trims"].positive? }
      waste_and_wait(server)
      assert_match(/^out of band$/, server.output, "the configuration's own hook is called too")
    end
  end

  def test_it_can_be_switched_off
    with_puma("CULET_TRIM" => "off") do |server|
      server.get("/garbage")
      server.get("/collect")
      assert_equal [false, "off", 0], server.figures["trim"].values_at("active", "mode", "trims")
    end
  end

  def test_a_worker_that_is_forked_anew_tidies_up_first
    skip "bin/test --all" unless all_tests?
    with_puma("WORKERS" => "2", "FORK_WORKER" => "1") do |server|
      before = workers(server, 2)
      assert_equal [0, 0], before.each_value.map { |figures| figures["compactions"] }
      Process.kill("URG", server.pid)
      assert_settles("a worker of the next generation, forked after a compaction") do
        workers(server, 2).reject { |pid, _| before.key?(pid) }.each_value.any? { |figures| figures["compactions"].positive? }
      end
    end
  end

  def test_a_hot_restart
    skip "bin/test --all" unless all_tests?
    with_puma do |server|
      waste_and_wait(server)
      Process.kill("USR2", server.pid)
      assert_settles("it has begun anew") { answers?(server) && server.figures["trim"]["returned_bytes"] < 10 * ServerHelper::MEBIBYTE }
      waste_and_wait(server)
    end
  end

  private

  def with_puma(env = {})
    result = nil
    with_server(*COMMAND, env: env, gems: bundle(self.class::GEMFILE)) do |server|
      result = yield server
      assert_empty server.output.scan(/^.*(?:warn|error|culet:).*$/i)
    end
    result
  end
end

class PumaTest < Minitest::Test
  include PumaTests

  GEMFILE = "Gemfile"
end

ServerHelper.each_older_puma(PumaTests, "Test")
