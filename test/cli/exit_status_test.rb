# frozen_string_literal: true

require "test_helper"
require "culet/cli"
require "json"
require "stringio"
require "timeout"

# What culet ends with is what the command that it ran ended with, as in a shell.
class CliExitStatusTest < Minitest::Test
  RUBY = [RbConfig.ruby, "--disable-gems"].freeze
  # Each runs a command to its end. A cow takes a second to look at what it runs.
  RUNNING = { %w[run] => 0, %w[trace] => 0, %w[strings] => 0, %w[requires] => 0, %w[requires --unused] => 0, %w[cow --writes 0] => 1.5 }.freeze

  RUNNING.each do |words, seconds|
    name = words.first(2).join("_").tr("-", "_")

    define_method(:"test_#{name}_ends_with_the_commands_status") do
      assert_equal 9, status(*words, "-e", "sleep #{seconds}; exit 9"), words.inspect
    end

    define_method(:"test_#{name}_ends_as_after_a_signal") do
      # A Ruby that is killed leaves nothing to be told.
      script = words == %w[run] ? "Process.kill(:TERM, $$); sleep" : "sleep #{seconds}; Process.kill(:TERM, $$); sleep"
      ended = status(*words, "-e", script)
      assert_equal words == %w[run] ? :TERM : 143, ended
    end

    define_method(:"test_#{name}_of_no_command") do
      { "culet-no-such-command" => [127, "no such program"],
        "/etc/passwd" => [126, "it is not executable; run `chmod +x /etc/passwd`"] }.each do |command, (expected, reason)|
        err = StringIO.new
        assert_equal expected, Culet::CLI.run([*words, "--", command], out: StringIO.new, err: err)
        assert_equal "culet: cannot run #{command}: #{reason}\n", err.string
      end
    end

    # The keyboard's signal goes to all in the foreground.
    define_method(:"test_#{name}_after_ctrl_c") do
      interrupted(*words, "--", *RUBY, "-e", "puts :up; $stdout.flush; sleep") { |ended| assert_equal 130, ended.exitstatus || (128 + ended.termsig) }
    end
  end

  def test_a_command_that_ends_well_after_ctrl_c
    script = "trap(:INT) { exit }; puts :up; $stdout.flush; sleep"
    interrupted("trace", "--out", "trace", "--", *RUBY, "-e", script) { |ended, err| assert_equal 0, ended.exitstatus, err }
  end

  # RubyGems tells at length of an exception in its `require`, and ends with 1.
  def test_signals_are_no_exceptions_while_it_loads
    folder = new_folder
    Dir.mkdir("#{folder}/culet")
    %w[INT TERM HUP].each do |signal|
      File.write("#{folder}/culet/cli.rb", "begin; Process.kill(:#{signal}, $$); sleep; rescue SignalException => e; warn(e); end")
      _, err, status = run_program(RbConfig.ruby, "-I#{folder}", "#{TestHelper::ROOT}/exe/culet")
      assert_equal [Signal.list[signal], ""], [status.termsig, err]
    end
  end

  def test_looking_again_and_again_ends_by_ctrl_c
    with_program(*RUBY, "-e", WAITING) do |pid|
      Dir.mktmpdir do |directory|
        path = "#{directory}/series.snapshot"
        written = -> { Dir.children(directory).sum { |name| File.size?("#{directory}/#{name}").to_i } > 3000 }
        interrupted("snapshot", pid, "--every", "0.1", "--out", path, ready: written) do |ended, err|
          assert_equal 130, ended.exitstatus, err
          assert_match(/\Aculet: wrote #{path}/, err)
        end
      end
    end
  end

  # Whenever it comes: while Ruby loads us, too.
  def test_ctrl_c_at_any_time
    10.times do |number|
      reader, writer = IO.pipe
      pid = spawn(NEUTRAL, *culet_command, "doctor", in: File::NULL, out: File::NULL, err: writer, pgroup: true)
      writer.close
      wait_for_script(pid)
      sleep(number * 0.015)
      Process.kill(:INT, pid)
      text = reader.read
      reader.close
      ended = Process.wait2(pid).last
      assert_includes [0, 1, 130], ended.exitstatus || (128 + ended.termsig), text
      refute_match(/Interrupt|\.rb:\d+/, text)
    end
  end

  # Where there is nothing to report the command's status still counts, unless it says that all went well.
  def test_commands_that_leave_nothing_to_report
    [%w[requires], %w[requires --unused], %w[strings]].each do |words|
      { 6 => 6, 0 => 1 }.each do |ended, expected|
        out = StringIO.new
        err = StringIO.new
        assert_equal expected, Culet::CLI.run([*words, "--", "sh", "-c", "exit #{ended}"], out: out, err: err), err.string
        assert_equal ["", 1], [out.string, err.string.lines.size], err.string
      end
    end
    out, err, ended = run_culet("cow", "--", "sh", "-c", "exit 6", env: NEUTRAL)
    assert_equal ["", 6, 1], [out, ended.exitstatus, err.lines.size], err
  end

  def test_a_doctor_who_finds_something_bad
    out, _, ended = run_culet("doctor", "--json", env: NEUTRAL.merge("LD_PRELOAD" => "/no/such/libjemalloc.so.2"))
    assert_includes JSON.parse(out)["findings"].map { |one| one["verdict"] }, "bad"
    assert_equal 1, ended.exitstatus
    out, _, ended = run_culet("doctor", env: NEUTRAL)
    assert_match(/\AA Ruby started from this shell/, out)
    assert_equal out.match?(/^bad /) ? 1 : 0, ended.exitstatus
  end

  private

  # @return [Integer, Symbol] the exit status of culet with a Ruby command, or the signal that ended it
  def status(*words, flag, script)
    Dir.mktmpdir do |directory|
      out = words.first == "run" ? [] : ["--out", "#{directory}/out"]
      _, err, ended = run_culet(*words, *out, "--", *RUBY.first(1), flag, script, env: NEUTRAL)
      refute_match(/\.rb:\d+:in/, err)
      ended.exitstatus || Signal.signame(ended.termsig).to_sym
    end
  end

  # Ctrl-C to culet and what it started, once that has said something, or `ready` says so.
  def interrupted(*words, ready: nil)
    Dir.mktmpdir do |directory|
      with_started(*culet_command, *words, env: NEUTRAL, err: "#{directory}/err", chdir: directory) do |pid, out|
        ready ? Timeout.timeout(PATIENCE_SECONDS) { sleep 0.02 until ready.call } : out.readpartial(1)
        Process.kill(:INT, -pid)
        yield await_end(pid), File.read("#{directory}/err").lines.grep(/culet/).join
      end
    end
  end

  # Ruby itself, before it comes to the script, has a backtrace of its own for Ctrl-C: until then it catches the signal.
  def wait_for_script(pid)
    Timeout.timeout(PATIENCE_SECONDS) do
      sleep 0.001 until caught?(pid) || ended?(pid)
      sleep 0.001 while caught?(pid) && !ended?(pid)
    end
  end

  def caught?(pid) = (File.read("/proc/#{pid}/status")[/^SigCgt:\s+(\h+)/, 1].to_s.to_i(16) & 0b10).positive?

  def ended?(pid) = File.read("/proc/#{pid}/status").match?(/^State:\s+Z/)
end
