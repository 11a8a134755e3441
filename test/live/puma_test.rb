# frozen_string_literal: true

require_relative "live_helper"
require "map/browser"
require "servers/server_helper"

# A real Puma cluster under load, in a real browser.
class LivePumaTest < Minitest::Test
  include LiveHelper

  # Named apart: the helper of servers has a with_server of its own.
  class Cluster
    include TestHelper
    include ServerHelper
    include Minitest::Assertions

    attr_accessor :assertions

    def initialize = @assertions = 0

    def run(&block)
      with_server("puma", "-C", File.expand_path("cluster.rb", __dir__), File.expand_path("cluster.ru", __dir__), &block)
    end
  end

  def test_the_page_shows_what_the_kernel_counts
    skip "no browser to open the page with; install one with `apt-get install chromium`" unless Browser::PROGRAM

    Cluster.new.run do |server|
      with_live(server.pid) do |url|
        Browser.use do |browser|
          @browser = browser
          assert_equal "drawn", browser.open(url, ready: "document.documentElement && document.documentElement.dataset.live")
          loaded(server) { wait("culetLive.store.last.state.order.length === 3 && culetLive.store.moments.length >= 4") }
          assert_curves(server)
          assert_a_killed_worker_disappears(server)
          assert_empty browser.complaints
        end
      end
    end
  end

  private

  # Requests without a pause, none of which may fail.
  def loaded(server)
    done = false
    failed = Queue.new
    counts = [0, 0, 0]
    clients = counts.each_index.map do |number|
      Thread.new do
        server.get((counts[number] += 1) % 20 == number ? "/keep" : "/") until done
      rescue StandardError => e
        failed << e
      end
    end
    assert_settles("requests") { counts.sum > 100 || failed.size.positive? }
    yield
    done = true
    clients.each(&:join)
    assert_empty(Array.new(failed.size) { failed.pop })
  ensure
    done = true
    clients&.each(&:join)
  end

  # The figures of the last moment, once nothing changes: of the kernel, of the page's table of data, and of its curves.
  def assert_curves(server)
    keys = nil
    last = nil
    assert_settles("the curves agree with smaps_rollup") do
      sleep 1.2
      keys = server.processes.sort
      expected = keys.to_h { |pid| [pid, rollup(pid)] }
      last = [expected, shown]
      agree?(*last)
    end
    assert_equal 3, keys.size
  rescue Minitest::Assertion => e
    raise e, "#{e.message}: #{last}"
  end

  # PSS, private and shared bytes.
  def rollup(pid)
    text = File.read("/proc/#{pid}/smaps_rollup")
    sum = ->(*names) { names.sum { |name| text[/^#{name}:\s+(\d+) kB/, 1].to_i * 1024 } }
    { "pss" => sum.call("Pss"), "private" => sum.call("Private_Clean", "Private_Dirty"), "shared" => sum.call("Shared_Clean", "Shared_Dirty"), "rss" => sum.call("Rss") }
  end

  # What the charts have at their right edge.
  def shown
    @browser.evaluate(<<~JAVASCRIPT)
      (function () {
        var page = culetLive, state = page.store.last.state, stacks = page.stacks, last = [page.store.last], found = {};
        var lines = {};
        page.lines.series.forEach(function (one) { lines[one.key] = one.values.at(-1); });
        state.order.forEach(function (key) {
          var parts = {};
          stacks.parts(last, key, "sharing").forEach(function (part) { parts[part.key] = part.values[0]; });
          var levels = stacks.parts(last, key, "levels").reduce(function (sum, part) { return sum + part.values[0]; }, 0);
          found[state.processes[key].pid] = { pss: lines[key], "private": parts.private_bytes, shared: parts.shared_bytes, rss: levels };
        });
        return found;
      }())
    JAVASCRIPT
  end

  def agree?(expected, found)
    expected.all? do |pid, figures|
      figures.all? { |name, bytes| (found.dig(pid.to_s, name).to_i - bytes).abs <= 0.01 * [bytes, 1_000_000].max }
    end
  end

  def assert_a_killed_worker_disappears(server)
    victim = (server.processes - [server.pid]).first
    Process.kill(:KILL, victim)
    wait("!culetLive.store.last.state.order.some(function (key) { return key.startsWith('#{victim}-'); })")
    wait("!document.getElementById('processes').textContent.includes('(#{victim})')")
    wait("culetLive.lines.series.find(function (one) { return one.key.startsWith('#{victim}-'); }).values.at(-1) === null")
    wait("Array.from(document.querySelectorAll('#events tbody tr')).some(function (row) { return /#{victim}.*exit/.test(row.textContent); })")
    wait("culetLive.store.last.state.order.length === 3")
  end

  def with_live(pid)
    Dir.mktmpdir do |folder|
      with_reader(pid, folder) { |reader| yield reader.gets.chomp }
    end
  end

  def with_reader(pid, folder)
    with_started(*culet_command, "live", pid.to_s, err: "#{folder}/err") do |live, reader|
      assert reader.wait_readable(PATIENCE), "it printed nothing"
      yield reader
      Process.kill(:INT, live)
      assert_equal 0, await_end(live).exitstatus
      assert_empty File.read("#{folder}/err")
    end
  end

  def wait(condition) = assert_settles(condition) { @browser.evaluate("Boolean(#{condition})") }
end
