# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require "culet"
require "culet/model/sampler"

# The moments of Culet::Live::Sampler, of real processes.
class SamplerTest < Minitest::Test
  include TestHelper

  # Forks workers, then one more for each line of input. The master has the agent, and so do they.
  CLUSTER = <<~RUBY
    $stdout.sync = true
    4.times { GC.start(full_mark: false) } # Ruby 4.1 starts without a collection
    def work
      fork do
        Process.setproctitle("worker of cluster") unless ARGV.include?("untitled")
        kept = "x" * 5_000_000
        sleep
      end
    end
    workers = Array.new(2) { work }
    $stdout.puts workers.join(" ")
    while $stdin.gets
      $stdout.puts work
    end
    Process.kill(:KILL, 0)
  RUBY
  AGENT = %w[-rculet/agent -rculet/auto].freeze

  def test_figures_are_those_of_the_kernel
    with_cluster(*AGENT) do |root, sampler|
      moment = settled(sampler) { |one| one["processes"].all? { |process| process["figures"] && like_the_kernel?(process) } }
      assert_equal 3, moment["processes"].size
      assert_equal root, moment["processes"].first["pid"]
      assert_equal([root] * 2, moment["processes"].drop(1).map { |process| process["parent_pid"] })
      assert_equal moment["processes"].sum { |process| process["pss_bytes"] }, moment["total"]["pss_bytes"]
    end
  end

  def test_levels_add_up_to_the_resident_memory
    with_cluster(*AGENT) do |_, sampler|
      moment = settled(sampler) { |one| one["processes"].all? { |process| process.dig("figures", "minor_gcs").to_i.positive? } }
      moment["processes"].each do |process|
        assert_equal process["rss_bytes"], process["figures"]["levels"].values.sum
        assert_operator process["figures"]["levels"]["ruby_objects"], :>, 100_000
      end
      worker = moment["processes"].last["figures"]
      assert_operator worker["malloc_used_bytes"], :>, 5_000_000
      assert_operator worker["live_slots"], :>, 0
      refute worker["profile"]
    end
  end

  def test_processes_come_and_go
    with_cluster do |_, sampler, input|
      first = sampler.call
      assert_empty first["events"]
      assert(first["processes"].all? { |process| process["figures"].nil? && process["ruby"] })
      gone = first["processes"].last["pid"]
      Process.kill(:KILL, gone)
      moment = settled(sampler) { |one| one["processes"].size == 2 }
      assert_equal([["exit", gone]], moment["events"].map { |event| event.values_at("kind", "pid") })
      input.puts
      moment = settled(sampler) { |one| one["processes"].size == 3 }
      assert_equal(["fork"], moment["events"].map { |event| event["kind"] } - ["restart"])
    end
  end

  def test_a_process_with_the_title_of_one_that_ended_replaces_it
    with_cluster do |_, sampler, input|
      settled(sampler) { |one| one["processes"].count { |process| process["title"] == "worker of cluster" } == 2 }
      Process.kill(:KILL, sampler.call["processes"].last["pid"])
      settled(sampler) { |one| one["processes"].size == 2 }
      input.puts
      moment = settled(sampler) { |one| one["events"].any? { |event| event["kind"] == "restart" } }
      assert_equal moment["processes"].last["pid"], moment["events"].last["pid"]
    end
  end

  # All processes have the title of their parent.
  def test_each_process_without_a_title_replaces_one
    with_cluster(words: %w[untitled]) do |_, sampler, input|
      first = sampler.call["processes"]
      assert_equal 1, first.map { |process| process["title"] }.uniq.size
      Process.kill(:KILL, *first.drop(1).map { |process| process["pid"] })
      settled(sampler) { |one| one["processes"].size == 1 }
      events = []
      2.times do |number|
        input.puts
        settled(sampler) { |one| events.concat(one["events"]) && one["processes"].size == number + 2 }
      end
      new = sampler.call["processes"].drop(1).map { |process| process["pid"] }
      assert_equal %w[fork restart fork restart], events.map { |event| event["kind"] }
      assert_equal new.flat_map { |pid| [pid, pid] }, events.map { |event| event["pid"] }
      Process.kill(:KILL, new.first)
      moment = settled(sampler) { |one| one["processes"].size == 2 }
      assert_equal([["exit", new.first]], moment["events"].map { |event| event.values_at("kind", "pid") })
    end
  end

  def test_a_stopped_process_delays_no_moment
    with_cluster(*AGENT) do |_, sampler|
      moment = settled(sampler) { |one| one["processes"].all? { |process| process["figures"] } }
      worker = moment["processes"].last["pid"]
      Process.kill(:STOP, worker)
      3.times { assert_equal 3, sampler.call["processes"].size }
      Process.kill(:CONT, worker)
      settled(sampler) { |one| one["processes"].last["figures"] }
    end
  end

  def test_there_is_no_moment_after_the_end
    with_cluster do |root, sampler|
      pids = sampler.call["processes"].map { |process| process["pid"] }
      Process.kill(:KILL, *pids)
      Process.wait(root)
      assert_settles("there is no moment") { sampler.call.nil? }
    end
  end

  def test_what_does_nothing_is_the_same_object
    with_cluster do |_, sampler|
      first = settled(sampler) { |one| one["processes"].count { |process| process["title"] == "worker of cluster" } == 2 }
      settled(sampler) do |one|
        same = one["processes"].zip(first["processes"]).all? { |now, before| now.equal?(before) }
        first = one
        same
      end
    end
  end

  def test_a_moment_is_json
    with_cluster(*AGENT) do |_, sampler|
      moment = settled(sampler) { |one| one["processes"].all? { |process| process["figures"] } }
      assert_equal moment, JSON.parse(JSON.generate(moment))
    end
  end

  # An agent of another version, or one whose process knows less, leaves counters out.
  def test_an_agent_that_counts_trims_without_their_bytes
    process = Struct.new(:pid, :title, :counters).new(7, "worker", { "trims" => 1 })
    events = Culet::Live::Events.new
    events.call(1.0, [process], gone: [], steps: [])
    process.counters = { "trims" => 3 }
    assert_equal([["trim", "2 trims", 0]],
                 events.call(2.0, [process], gone: [], steps: []).map { |event| event.values_at("kind", "text", "bytes") })
  end

  private

  # Yields the root's number, a sampler that follows it, and its input.
  def with_cluster(*options, words: [])
    with_fed(RbConfig.ruby, "-I#{ROOT}/lib", *options, "-e", CLUSTER, *words) do |root, output, input|
      assert output.wait_readable(PATIENCE_SECONDS), "the cluster did not start"
      sampler = Culet::Live::Sampler.new([root])
      yield root, sampler, input
    ensure
      sampler&.close
    end
  end

  # @return [Hash] the first moment for which the block is true
  def settled(sampler)
    moment = nil
    assert_settles(-> { "such a moment; the last: #{moment}" }) { yield(moment = sampler.call) }
    moment
  end

  def like_the_kernel?(process)
    rollup = Culet::Processes::Memory.rollup(process["pid"])
    { "rss_bytes" => rollup["rss_bytes"], "pss_bytes" => rollup["pss_bytes"],
      "private_bytes" => rollup["private_clean_bytes"] + rollup["private_dirty_bytes"] }.all? do |name, bytes|
      (bytes - process[name]).abs <= (bytes / 20) + 200_000
    end
  end
end
