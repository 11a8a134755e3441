# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require_relative "../servers/server_helper"

# `culet explain --fit` against clusters that run.
class FitTest < Minitest::Test
  include ServerHelper

  MB = 1_000_000
  # A parent with 40 MB that its workers share; each makes 15 MB of its own.
  CLUSTER = <<~RUBY
    shared = Array.new(40) { "s" * 1_000_000 }
    3.times { GC.start }
    ready, done = IO.pipe
    count = Integer(ARGV.first)
    count.times { fork { own = Array.new(15) { "o" * 1_000_000 }; done.write("."); sleep; own } }
    ready.read(count)
    puts :up
    $stdout.flush
    sleep
  RUBY
  # A process that takes 30 MB again and again, for longer than a moment of the sampler.
  PEAKS = <<~RUBY
    puts :up
    $stdout.flush
    loop do
      all = Array.new(30) { "p" * 1_000_000 }
      sleep 1.5
      all.each(&:clear)
      sleep 1.5
    end
  RUBY
  APPLICATION = <<~'RUBY'
    shared = Array.new(40) { "s" * 1_000_000 }
    own = nil
    run ->(_) { own ||= Array.new(15) { "o" * 1_000_000 }; [200, {}, ["#{own.size + shared.size}"]] }
  RUBY
  TOLERANCE = 0.1

  def test_clusters_of_one_to_four_workers
    fit = cluster(2) { |pid| fit(pid, "200MB") }
    assert_equal 200 * MB, fit["limit_bytes"]
    assert_in_delta 15 * MB, fit["worker_bytes"], 4 * MB
    assert_operator fit["shared_bytes"], :>, 40 * MB
    assert_equal (200 * MB - fit["shared_bytes"]) / fit["worker_bytes"], fit["workers"]
    assert_operator fit["low"], :<=, fit["workers"]
    assert_operator fit["workers"], :<=, fit["high"]
    [1, 2, 3, 4].each do |count|
      measured = cluster(count) { |pid| total(pid) }
      assert_in_delta 1, (fit["shared_bytes"] + (count * fit["worker_bytes"])).fdiv(measured), TOLERANCE, "#{count} workers"
    end
  end

  def test_peaks_that_were_seen
    with_program(RbConfig.ruby, "-e", PEAKS, env: NEUTRAL.merge("MALLOC_MMAP_THRESHOLD_" => "131072")) do |pid|
      found = fit(pid, "100MB", "8s")
      assert_operator found["worker_bytes"], :>, 30 * MB
      assert_operator found["high"], :>, found["low"]
      assert_operator found["thread_bytes"], :>, 5 * MB
      assert_operator found["thread_bytes"], :<=, 31 * MB
    end
  end

  def test_the_sentence
    with_program(RbConfig.ruby, "-e", "puts :up; $stdout.flush; sleep", env: NEUTRAL) do |pid|
      out, = run_culet("explain", pid, "--for", "1s", "--fit", "1MB", env: NEUTRAL)
      assert_match(/^1\.00 MB has no room for one worker: it takes /, out)
      out, = run_culet("explain", pid, "--for", "1s", "--fit", "2GiB", env: NEUTRAL)
      assert_match(/^2\.15 GB has room for \d+ workers \(\d+ to \d+\): .* once, and .* for each worker at its peak/, out.gsub("\n", " ").sub(/.*?(?=2\.15 GB)/, ""))
    end
    assert_sentence(/--fit takes a size/, "explain", "1", "--fit", "much", status: 2)
  end

  def test_puma
    skip "eight servers: bin/test --all runs it" unless all_tests?
    fit = puma(2) { |pid| fit(pid, "1GB") }
    (1..8).each do |count|
      measured = puma(count) { |pid| total(pid) }
      share = (fit["shared_bytes"] + (count * fit["worker_bytes"])).fdiv(measured)
      warn(format("%<count>d workers: %<share>.3f of %<bytes>d", count: count, share: share, bytes: measured)) if ENV["CULET_TEST_FIGURES"]
      assert_in_delta 1, share, TOLERANCE, "#{count} workers"
    end
  end

  private

  def cluster(count, &block) = with_program(RbConfig.ruby, "-e", CLUSTER, count.to_s, env: NEUTRAL, &block)

  # Puma with so many workers, each of which has served requests.
  def puma(count)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config.ru", APPLICATION)
      command = ["puma", "--quiet", "-w", count.to_s, "-t", "1:1", "--preload", "-p", "0", "#{folder}/config.ru"]
      result = nil
      with_server("sh", "-c", "exec #{command.join(" ")}".sub("-p 0", "-p $PORT")) do |server|
        assert_settles("all workers are warm") do
          at_once(server, "/", 4 * count)
          children(server.pid).all? { |pid| own(pid) > 15 * MB } && children(server.pid).size == count
        end
        result = yield server.pid
      end
      result
    end
  end

  def children(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split

  def own(pid) = File.read("/proc/#{pid}/smaps_rollup")[/^Private_Dirty: +(\d+)/, 1].to_i * 1024

  def total(pid) = document("cow", pid, "--writes", "0")["total_pss_bytes"]

  def fit(pid, size, seconds = "2s") = document("explain", pid, "--fit", size, "--for", seconds)["fit"]

  def document(*words) = JSON.parse(assert_culet(*words, "--json").first)
end
