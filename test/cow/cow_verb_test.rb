# frozen_string_literal: true

require_relative "cow_helper"
require "timeout"

# `culet cow` as users meet it, in good weather and bad.
class CowVerbTest < Minitest::Test
  include CowHelper

  PROCESS_KEYS = %w[pid parent_pid name forked age_seconds rss_bytes pss_bytes shared_bytes private_bytes private_dirty_bytes unshared_bytes
                    fresh_bytes allocator regions writes].freeze
  SHARES_KEYS = %w[shared_bytes private_bytes unshared_bytes fresh_bytes].freeze

  def test_the_document
    with_family(*RUBY, "-e", WORKERS) do |pid|
      document = json("cow", pid.to_s)
      processes = document["processes"]
      assert_equal [pid, 4], [processes.first["pid"], processes.size]
      processes.each { |one| assert_equal PROCESS_KEYS, one.keys }
      assert_equal [false, true, true, true], processes.map { |one| one["forked"] }
      assert_equal [pid] * 3, processes.drop(1).map { |one| one["parent_pid"] }
      assert_equal processes.sum { |one| one["pss_bytes"] }, document["total_pss_bytes"]
      assert_equal processes.sum { |one| one["rss_bytes"] }, document["total_rss_bytes"]
      assert_equal processes.drop(1).map { |one| one["private_bytes"] }.sort[1], document["next_worker_bytes"]
      processes.each { |one| adds_up(one) }
    end
  end

  def test_the_table
    with_family(*RUBY, "-e", WORKERS) do |pid|
      out, err, status = run_culet("cow", pid.to_s, env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
      assert_match(/\Aruby\S* \(process #{pid}\) and 3 more processes: \d+\.\d MB$/, out)
      assert_match(/^one more worker would cost about \d+\.\d MB$/, out)
      assert_match(/^#{pid} ruby\S* +parent +\d/, out)
      assert_equal 3, out.scan(/^\d+ ruby\S* +forked by #{pid} +\d/).size
      assert_match(/^malloc: in use, resident( +\d+\.\d){4} +\d+$/, out)
      assert_match(/^all( +\d+\.\d){4} +\d+$/, out)
      assert_match(/^cost: all processes together take/, out)
      assert_match(/^sharing: the average of 3 workers inherited /, out)
      refute_includes out, "\e"
    end
  end

  def test_a_limit
    with_family(*RUBY, "-e", WORKERS) do |pid|
      workers = Culet::Processes::Tree.new(pid).pids.drop(1)
      out, err, status = run_culet("cow", pid.to_s, "--max-private", "1MB", env: NEUTRAL)
      assert_equal 3, status.exitstatus
      assert_equal workers.sort, err.scan(/^culet: process (\d+) has [\d.]+ MB of private memory, more than 1\.00 MB$/).flatten.map(&:to_i).sort
      assert_match(/^all /, out)
      _, err, status = run_culet("cow", pid.to_s, "--max-private", "4GiB", env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
    end
  end

  def test_wrong_usage
    { ["cow"] => /no process given/, %w[cow 0] => /"0" is not a process number/, ["cow", "1", "--", "ls"] => /a process or a command, not both/,
      ["cow", "--"] => /no command given/,
      ["cow", "1", "--for", "5s"] => /--for needs --every/,
      ["cow", "--every", "1s", "--for", "5s", "--", "ls"] => /--for cannot be used with a command/,
      ["cow", "1", "--max-private", "much"] => /takes a size, e\.g\. 80MB/,
      ["cow", "1", "--writes", "some"] => /--writes takes a whole number/, ["cow", "1", "--live", "--stop"] => /cannot be combined/ }.each do |words, sentence|
      assert_sentence(sentence, *words, status: 2)
    end
  end

  def test_no_such_process
    ended = spawn("true")
    Process.wait(ended)
    assert_sentence("culet: there is no process #{ended}\n", "cow", ended.to_s)
  end

  def test_a_family_of_one
    with_family(*RUBY, "-e", WAITING) do |pid|
      out, err, status = run_culet("cow", pid.to_s, env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
      assert_includes out, "the process has no children, so nothing is shared"
      document = json("cow", pid.to_s)
      assert_nil document["next_worker_bytes"]
      assert_equal 1, document["processes"].size
    end
  end

  def test_a_child_that_is_a_program_of_its_own
    program = "spawn('sleep', '1000'); fork { sleep }; puts :up; $stdout.flush; sleep"
    with_family(*RUBY, "-e", program) do |pid|
      document = json("cow", pid.to_s)
      forked = document["processes"].to_h { |one| [one["name"], one["forked"]] }
      assert_equal false, forked.fetch("sleep")
      assert_equal 1, document["processes"].count { |one| one["forked"] }
      out, = run_culet("cow", pid.to_s, env: NEUTRAL)
      assert_match(/^\d+ sleep +unrelated program/, out)
    end
  end

  def test_zombies_are_no_members
    program = "child = fork { exit! }; fork { sleep }; sleep 0.01 until File.read(\"/proc/\#{child}/stat\").include?(\") Z \"); puts :up; $stdout.flush; sleep"
    with_family(*RUBY, "-e", program) do |pid|
      document = json("cow", pid.to_s)
      assert_equal 2, document["processes"].size
      assert_empty document["problems"]
    end
  end

  # Who ends between being found and being read is left out, with a sentence or without.
  def test_workers_that_come_and_go
    program = "#{FORKS}Thread.new { loop { Process.wait(fork { sleep 0.05 }) } }; family(1) { nil }"
    with_family(*RUBY, "-e", program, settled: false) do |pid|
      8.times do
        out, err, status = run_culet("cow", pid.to_s, "--json", env: NEUTRAL)
        assert_equal [0, ""], [status.exitstatus, err]
        document = JSON.parse(out)
        assert_operator document["processes"].count { |one| one["why"].nil? }, :>=, 2
        document["problems"].each { |sentence| assert_match(/\d/, sentence) }
      end
    end
  end

  # Of a process that may not be read, what everybody may know is told, and what keeps the rest from being known.
  def test_another_users
    skip "only root can become another user" unless Process.euid.zero?

    with_family(*RUBY, "-e", "fork { sleep }; #{WAITING}") do |pid|
      script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); exec(*ARGV)"
      out, err, status = run_program(RbConfig.ruby, "-e", script, "--", *culet_command, "cow", pid, env: NEUTRAL.merge("HOME" => "/"), chdir: "/")
      assert_equal 1, status.exitstatus
      assert_match(/\Aculet: process #{pid} belongs to .*root.*\n\z/, err)
      assert_match(/^#{pid} ruby\S* +not readable +\d+\.\d +-/, out)
      assert_equal 2, out.scan("not readable").size
    end
  end

  def test_of_several_some_may_not_be_read
    skip "only root can have workers of other users" unless Process.euid.zero?

    script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); up, out = IO.pipe; " \
             "pid = spawn('#{RbConfig.ruby}', '-e', 'puts :up; $stdout.flush; sleep', out: out); up.gets; " \
             "ok = system(*ARGV, pid.to_s); Process.kill(:KILL, pid); exit(ok)"
    with_family(*RUBY, "-e", WAITING) do |pid|
      out, = assert_success(RbConfig.ruby, "-e", script, "--", *culet_command, "cow", "--json", pid, env: NEUTRAL.merge("HOME" => "/"), chdir: "/")
      document = JSON.parse(out)
      mine, other = document["processes"].partition { |one| one["why"].nil? }
      assert_equal [1, [pid]], [mine.size, other.map { |one| one["pid"] }]
      assert_operator other.first["rss_bytes"], :>, 1_000_000
      assert_match(/belongs to .*root/, other.first["why"])
      assert_equal [other.first["why"]], document["problems"]
    end
  end

  def test_sixty_four_workers
    with_family(*RUBY, "-e", "#{FORKS}family(64) { nil }") do |pid|
      document = json("cow", pid.to_s)
      assert_equal 65, document["processes"].size
      assert_equal 64, document["processes"].count { |one| one["forked"] }
      assert_operator document["total_rss_bytes"], :>, 3 * document["total_pss_bytes"]
    end
  end

  private

  # The levels' bytes are the process's.
  def adds_up(process)
    shares = process["regions"].values
    shares.each { |one| assert_equal SHARES_KEYS, one.keys }
    assert_equal process["rss_bytes"], shares.sum { |one| one["shared_bytes"] + one["private_bytes"] }
    assert_equal process["unshared_bytes"], shares.sum { |one| one["unshared_bytes"] }
    assert_in_delta process["private_bytes"], shares.sum { |one| one["private_bytes"] }, 0.01 * process["rss_bytes"]
  end
end
