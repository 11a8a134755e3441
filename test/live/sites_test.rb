# frozen_string_literal: true

require_relative "live_helper"
require "culet/tools/live/sources"
require "map/browser"

# The lines of code that hold memory: of a real profile, and in the page.
class LiveSitesTest < Minitest::Test
  include LiveHelper

  PROFILED = "require 'culet/profile'; Culet::Profile.start(sample_bytes: 1024) if ARGV[0] == 'on'; $kept = Array.new(2_000) { 'x' * 5000 }; puts; $stdout.flush; sleep"

  def test_the_sites_of_a_running_profile
    with_program(*culet_command, "run", "--", RbConfig.ruby, "-Ilib", "-e", PROFILED, "on") do |pid|
      sources = Sources.new { [pid] }.to_h
      found = sources.fetch("sites").call({ "pid" => pid.to_s })
      assert_operator found["total_bytes"], :>, 100_000
      assert_equal "-e:1", found["rows"].first["name"]
      assert_operator found["rows"].first["low_bytes"], :<=, found["rows"].first["bytes"]
      assert_same found, sources.fetch("sites").call({ "pid" => pid.to_s }), "it is not asked again at once"
    end
  end

  def test_a_profile_that_is_off_stays_off
    with_program(RbConfig.ruby, "-Ilib", "-e", PROFILED, "off") do |pid|
      error = assert_raises(Culet::Error) { Sources.new { [pid] }.sites({ "pid" => pid.to_s }) }
      assert_match(/the profile of process #{pid} is off; start it with `culet profile #{pid}`/, error.message)
      refute_predicate Culet::Profile::Live.new(pid), :running?
    end
  end

  def test_other_processes_are_not_read
    sources = Sources.new { [1] }
    ["", "0", Process.pid.to_s, "1 ", "x" * 100, nil].each do |text|
      %i[map sites].each do |kind|
        error = assert_raises(Culet::Error) { sources.public_send(kind, { "pid" => text }) }
        assert_match(/is not watched, or has ended/, error.message)
      end
    end
  end

  def test_the_panel_is_there_where_a_profile_runs_and_asks_while_it_is_open
    skip "no browser to open the page with; install one with `apt-get install chromium`" unless Browser::PROGRAM

    asked = []
    answer = { "at" => START, "total_bytes" => 5_000_000, "rows" => [{ "name" => "<b>cart.rb:7", "bytes" => 4_000_000, "share" => 0.8, "low_bytes" => 3_000_000,
                                                                       "high_bytes" => 5_000_000 }] }
    sites = ->(query) { asked << query["pid"].to_s and answer }
    running = process(11).tap { |one| one["figures"]["profile"] = true }
    with_server(history(frames([moment(0, [running, process(12)])])), sources: { "sites" => sites }) do |server, _|
      Browser.use do |browser|
        browser.open(server.url, ready: "document.documentElement && document.documentElement.dataset.live")
        wait(browser, "!document.getElementById('sites').hidden")
        browser.evaluate("document.querySelector('#sites details').open = true; culetLive.choose('12-1012')")
        wait(browser, "/Choose a process whose profile runs/.test(document.querySelector('#sites [data-part=lead]').textContent)")
        assert_empty asked
        browser.evaluate("culetLive.choose('11-1011')")
        wait(browser, "document.querySelectorAll('#sites tbody tr').length === 1")
        cells = browser.evaluate("Array.from(document.querySelectorAll('#sites tbody td'), function (one) { return one.textContent; })")
        assert_equal ["<b>cart.rb:7", "4.00 MB", "3.00 MB to 5.00 MB", "80.0 %"], cells
        assert_equal ["11"], asked
      end
    end
  end

  private

  def wait(browser, condition) = eventually(condition) { browser.evaluate("Boolean(#{condition})") }
end
