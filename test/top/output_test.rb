# frozen_string_literal: true

require_relative "top_helper"
require "minitest/mock"
require "culet/tools/top"

# `culet top` without a terminal: one table, or one document.
class TopOutputTest < Minitest::Test
  include TopHelper

  MEMORY = { "rss_bytes" => %w[Rss], "pss_bytes" => %w[Pss], "private_bytes" => %w[Private_Clean Private_Dirty], "shared_bytes" => %w[Shared_Clean Shared_Dirty] }.freeze

  # culet maps the same libraries, so that the share of the others is larger once it has ended.
  CHANGES = { "pss_bytes" => 600_000, "private_bytes" => 600_000, "shared_bytes" => 600_000 }.freeze

  def test_a_table
    with_tree do |pid|
      text = shown("top", pid, "--every", "0.2")
      assert_match(/\Aculet top  \d\d:\d\d:\d\d  3 processes  sizes in MB\nPSS [\d.]+ MB  growth /, text)
      assert_match(/^ *PID +PSS +PRIV +SHR% .* AGE TITLE$/, text)
      assert_equal [pid, child(pid, "worker one"), child(pid, "worker two")].sort, rows(text).map(&:to_i).sort
      assert_equal ["├ ", "└ "], rows(text).drop(1).map { |row| row[/[├└] /] }
      refute_match(/\e/, text)
      assert_match(/\e\[/, shown("top", pid, "--color", "--every", "0.2"))
    end
  end

  def test_a_document_agrees_with_the_kernel
    with_tree do |pid|
      moment = disagreements = nil
      5.times do
        moment = JSON.parse(shown("top", pid, "--json", "--every", "0.2"))
        disagreements = moment["processes"].flat_map { |process| disagreements(process) }
        break if disagreements.empty?
      end
      assert_empty disagreements
      assert_equal %w[at seconds processes total limit events].sort, moment.keys.sort
      assert_equal [pid, child(pid, "worker one"), child(pid, "worker two")], moment["processes"].map { |process| process["pid"] }
      moment["processes"].each do |process|
        assert_equal 0, process["growth_bytes"] / 1_000_000
        refute_nil process.dig("figures", "gc_per_minute"), "which takes two readings"
      end
      assert_equal moment["total"]["pss_bytes"], moment["processes"].sum { |process| process["pss_bytes"] }
    end
  end

  # The title is of this tree alone: other tests may run at the same time.
  def test_a_file_and_names
    title = "tree: master of #{Process.pid}"
    with_tree(title: title) do |pid|
      Dir.mktmpdir do |folder|
        out, err, status = run_culet("top", title, "--every", "0.2", "--out", "#{folder}/table.txt", env: NEUTRAL)
        assert_equal ["", "culet: wrote #{folder}/table.txt\n", true], [out, err, status.success?]
        assert_equal pid, rows(File.read("#{folder}/table.txt")).first.to_i
      end
    end
  end

  def test_without_words_it_shows_the_ruby_programs
    with_tree(agent: false) do |pid|
      top, text = IO.popen([NEUTRAL, *culet_command, "top", "--json", "--every", "0.2"]) { |io| [io.pid, io.read] }
      pids = JSON.parse(text)["processes"].map { |process| process["pid"] }
      assert_includes pids, pid
      assert_empty pids & [top, Process.pid], "neither culet nor what started it"
    end
  end

  def test_a_process_of_another_user
    skip "only root can start processes of other users" unless Process.uid.zero?

    with_program("setpriv", "--reuid=65534", "--clear-groups", RbConfig.ruby, "--disable-gems", "-e", "$0 = 'tree: hidden'; system('true'); #{WAITING}") do |pid|
      out, err, status = run_program("setpriv", "--reuid=65533", "--clear-groups", *culet_command, "top", pid, "--every", "0.2", env: NEUTRAL.merge("LC_ALL" => "C.UTF-8", "HOME" => "/tmp"))
      assert_equal ["", true], [err, status.success?], out
      assert_match(/^ *#{pid} +- +- +- +- /, out)
      assert_match(/^process #{pid} belongs to nobody; run culet as that user or as root\.$/, out)
      refute_match(/agent/, out) # which would not help
    end
  end

  def test_wrong_usage_and_no_such_process
    { ["--every", "0.1"] => [2, "--every takes a number from 0.2 to 3600"], ["--every", "4000"] => [2, "--every takes a number from 0.2 to 3600"],
      ["999999999"] => [1, "there is no process 999999999"],
      ["no such name"] => [1, "no process has \"no such name\""], ["1", "--", "true"] => [2, "does not run a command"] }.each do |words, (status, sentence)|
      assert_sentence(sentence, "top", *words, status: status)
    end
  end

  def test_processes_that_end_between_the_readings
    with_program(RbConfig.ruby, "--disable-gems", "-e", WAITING) do |pid|
      ending = lambda do |_seconds|
        Process.kill(:KILL, pid)
        await_end(pid)
      end
      Culet::Top.stub(:sleep, ending) { assert_sentence(/\Aculet: process #{pid} has ended$/, "top", pid.to_s) }
    end
  end

  private

  # Programs of other tests map the same libraries too, and end meanwhile: what disagrees is read again.
  #
  # @return [Array<Array>] figure, what the kernel says, what culet said
  def disagreements(process)
    text = File.read("/proc/#{process["pid"]}/smaps_rollup")
    MEMORY.filter_map do |key, names|
      kernel = names.sum { |name| text[/^#{name}:\s+(\d+) kB/, 1].to_i * 1024 }
      [key, kernel, process[key]] if (kernel - process[key]).abs > [kernel * 0.01, CHANGES[key].to_i].max
    end
  end

  def shown(*words)
    out, err, status = run_culet(*words.map(&:to_s), env: NEUTRAL.merge("LC_ALL" => "C.UTF-8"))
    assert_equal ["", 0], [err, status.exitstatus]
    out.force_encoding(Encoding::UTF_8)
  end
end
