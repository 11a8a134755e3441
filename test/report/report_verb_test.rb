# frozen_string_literal: true

require_relative "../scope/scope_helper"
require "pty"
require "timeout"

# `culet report` as users meet it.
class ReportVerbTest < Minitest::Test
  include ScopeHelper

  KEYS = %w[pid name rss_bytes pss_bytes private_dirty_bytes allocator levels unexplained_bytes trim_bytes malloc arenas ruby verdicts problems].freeze

  def test_the_document
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      document = json("report", pid.to_s)
      assert_empty KEYS - document.keys
      assert_equal pid, document["pid"]
      assert_equal document["rss_bytes"], document["levels"].values.sum
      assert_equal document["unexplained_bytes"], document["levels"]["unexplained"]
      assert(document["levels"].values.all?(Integer))
      document["verdicts"].each { |one| assert_equal %w[remedy text topic], one.keys.sort }
    end
  end

  def test_the_table
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      out, err, status = run_culet("report", pid.to_s, env: NEUTRAL)
      assert_equal [0, ""], [status.exitstatus, err]
      assert_match(/\A.+ \(process #{pid}\): \d+\.\d+ MB resident$/, out)
      assert_match(/^libraries and files +\d/, out)
      assert_match(/^resident +\d+\.\d+ +100\.0 %$/, out)
      assert_match(/^size: the largest part is /, out)
      assert_empty out.lines.select { |line| line.chomp.size > 100 }
      refute_includes out, "\e"
    end
  end

  # The lines of the table are what the document says.
  def test_table_and_document_agree
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      in_directory do |directory|
        run_culet("snapshot", pid.to_s, "--out", "#{directory}/a", env: NEUTRAL)
        document = json("report", "#{directory}/a")
        out, = run_culet("report", "#{directory}/a", env: NEUTRAL)
        require "culet/tools/report"
        document["levels"].each do |name, bytes|
          title = Culet::Levels::TITLES.fetch(name)
          bytes.zero? ? refute_match(/^#{title}  /, out) : assert_match(/^#{title} +#{format("%.1f", bytes / 1e6)} /, out)
        end
      end
    end
  end

  def test_several_processes_and_their_sum
    with_program(RbConfig.ruby, "-e", WAITING) do |one|
      with_program(RbConfig.ruby, "-e", WAITING) do |other|
        document = json("report", one.to_s, other.to_s)
        assert_equal [one, other], document["processes"].map { |process| process["pid"] }
        assert_equal document["processes"].sum { |process| process["pss_bytes"] }, document["total_pss_bytes"]
        assert_equal document["total_rss_bytes"], document["total_levels"].values.sum
        out, = run_culet("report", one.to_s, other.to_s, env: NEUTRAL)
        assert_match(/^2 processes together: \d+\.\d+ MB PSS/, out)
      end
    end
  end

  def test_one_of_several_that_is_not_there
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      out, err, status = run_culet("report", "999999999", pid.to_s, env: NEUTRAL)
      assert_equal [1, "culet: there is no process 999999999\n"], [status.exitstatus, err]
      assert_match(/\(process #{pid}\)/, out)
      refute_includes out, "together:"
    end
  end

  def test_it_is_written_to_a_file
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      in_directory do |directory|
        out, err, = run_culet("report", pid.to_s, "--json", "--out", "#{directory}/a.json", env: NEUTRAL)
        assert_equal ["", "culet: wrote #{directory}/a.json\n"], [out, err]
        assert_equal pid, JSON.parse(File.read("#{directory}/a.json"))["pid"]
      end
      assert_sentence(%r{cannot write /dev/full}, "report", pid.to_s, "--out", "/dev/full")
    end
  end

  # Every way to treat the process gives a report, and leaves it running.
  def test_treatments
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      { "sliced" => [], "live" => %w[--live], "stopped" => %w[--stop] }.each do |mode, words|
        document = json("report", pid.to_s, *words)
        assert_equal [mode, document["rss_bytes"]], [document["mode"], document["levels"].values.sum]
        assert_settles("it sleeps again") { Culet::Processes::Cpu.state(pid) == "S" }
      end
      assert_equal pid, json("report", pid.to_s, "--pause-ms", "5")["pid"]
    end
  end

  # What a process calls itself does not reach the terminal.
  def test_a_name_with_control_characters
    with_program(RbConfig.ruby, "-e", "File.write('/proc/self/comm', \"\\e[31mred\\a\"); #{WAITING}") do |pid|
      out, = run_culet("report", pid.to_s, env: NEUTRAL)
      refute_match(/[\e\a]/, out)
      assert_match(/\A\?\[31mred\?/, out)
      assert_equal "\e[31mred\a", json("report", pid.to_s)["name"]
    end
  end

  def test_wrong_usage
    assert_sentence(/no process given/, "report", status: 2)
    assert_sentence(/does not run a command/, "report", "--", "true", status: 2)
    assert_sentence(/--pause-ms takes a whole number from 1 to/, "report", "1", "--pause-ms", "0", status: 2)
    assert_sentence(/there is no process 999999999/, "report", "999999999")
    assert_sentence(/there is no file no-such\.snapshot; give a snapshot or a process number/, "report", "no-such.snapshot")
    assert_sentence(/README\.md is not a snapshot; `culet snapshot PID` writes one/, "report", "#{ROOT}/README.md")
  end
end
