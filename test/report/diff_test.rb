# frozen_string_literal: true

require_relative "../scope/scope_helper"

# `culet diff`: what grew.
class DiffTest < Minitest::Test
  include ScopeHelper

  # Grows when it gets a signal, and says so.
  GROWING = <<~RUBY
    kept = []
    trap("USR1") { kept << Array.new(20_000) { |i| "x" * (200 + i % 1000) }; puts :grown; $stdout.flush }
    puts :up; $stdout.flush
    sleep 0.01 while true
  RUBY
  # Of the strings alone: 20,000 of 700 bytes on average.
  GROWN_BYTES = 14_000_000

  def test_what_grew_between_two_snapshots
    directory = new_folder
    grow(directory)
    document = json("diff", "#{directory}/before", "#{directory}/after")
    rss = document["rss"]
    assert_equal rss["after_bytes"] - rss["before_bytes"], rss["grown_bytes"]
    assert_equal rss["grown_bytes"], document["levels"].values.sum { |level| level["grown_bytes"] }
    assert_in_delta GROWN_BYTES, rss["grown_bytes"], GROWN_BYTES * 0.6
    assert_equal rss["grown_bytes"], document["mappings"].sum { |mapping| mapping["grown_bytes"] }
    assert_equal document["before"]["pid"], document["after"]["pid"]
    assert_operator document["seconds"], :>, 0
  end

  def test_the_table
    directory = new_folder
    grow(directory)
    out, err, = run_culet("diff", "#{directory}/before", "#{directory}/after", env: NEUTRAL)
    assert_empty err
    assert_match(/\A.*\(process \d+\) to .*\(process \d+\): \+\d+\.\d MB$/, out)
    assert_match(/^resident +\d+\.\d +\d+\.\d +\+\d+\.\d$/, out)
    back, = run_culet("diff", "#{directory}/after", "#{directory}/before", env: NEUTRAL)
    assert_match(/: -\d+\.\d MB$/, back)
    assert_match(/before the first: exchange the two/, back)
  end

  # The page is that of `culet map` with both, blocks and all, and opens with what changed.
  def test_the_map_of_both
    directory = new_folder
    grow(directory)
    both = ["#{directory}/before", "#{directory}/after"]
    out, err, status = run_culet("diff", *both, "--html", "#{directory}/diff.html", env: NEUTRAL)
    assert_equal [0, "culet: wrote #{directory}/diff.html\n"], [status.exitstatus, err]
    assert_match(/^resident +\d+\.\d +\d+\.\d +\+\d+\.\d$/, out)
    run_culet("map", *both, "--html", "#{directory}/map.html", env: NEUTRAL)
    page = File.read("#{directory}/diff.html")
    assert page.include?(' data-open="changes"'), "it does not open with what changed"
    assert_equal page.sub(' data-open="changes"', ""), File.read("#{directory}/map.html")
    %w[facts-0 facts-1 blocks-0 blocks-1].each { |part| assert_includes page, %(id="#{part}") }
    assert_equal 2, json("diff", *both, "--html", "#{directory}/again.html")["rss"].values_at("before_bytes", "after_bytes").uniq.size
    assert_sentence(/cannot write/, "diff", *both, "--html", "#{directory}/none/diff.html")
  end

  def test_nothing_grew
    directory = new_folder
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      snapshot(pid, "#{directory}/one")
      document = json("diff", "#{directory}/one", "#{directory}/one")
      assert_equal [0, []], [document["rss"]["grown_bytes"], document["mappings"]]
      # A snapshot against the process as it is.
      assert_equal 0, json("diff", "#{directory}/one", pid.to_s)["rss"]["grown_bytes"]
    end
  end

  def test_two_processes
    with_program(RbConfig.ruby, "-e", WAITING) do |one|
      with_program(RbConfig.ruby, "-e", WAITING) do |other|
        out, = run_culet("diff", one.to_s, other.to_s, env: NEUTRAL)
        assert_match(/^These are two processes/, out)
      end
    end
  end

  def test_wrong_usage
    in_directory do |directory|
      with_program(RbConfig.ruby, "-e", WAITING) { |pid| snapshot(pid, "#{directory}/one") }
      assert_sentence(/has one snapshot; give another/, "diff", "#{directory}/one", status: 2)
      assert_sentence(/no such file|there is no file/, "diff", "#{directory}/one", "#{directory}/two")
    end
    assert_sentence(/give two snapshots/, "diff", status: 2)
    assert_sentence(/give two snapshots/, "diff", "1", "2", "3", status: 2)
    assert_sentence(/does not run a command/, "diff", "--", "true", status: 2)
  end

  private

  # Leaves two files in the directory: before and after.
  def grow(directory)
    with_started(RbConfig.ruby, "-e", GROWING, env: NEUTRAL) do |pid, output|
      assert_equal "up\n", output.gets
      snapshot(pid, "#{directory}/before")
      Process.kill(:USR1, pid)
      assert_equal "grown\n", output.gets
      snapshot(pid, "#{directory}/after")
    end
  end

  def snapshot(pid, path)
    assert_culet_success("snapshot", pid.to_s, "--out", path, env: NEUTRAL)
  end
end
