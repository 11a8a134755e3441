# frozen_string_literal: true

require_relative "scope_helper"

# Reading processes in good and in bad weather. What the program itself does, scope/test tests.
class ScopeReaderTest < Minitest::Test
  include ScopeHelper

  NO_PROCESS = 999_999_999

  def test_a_process_has_its_mappings_with_their_pages
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      snapshot = read(pid)
      assert_equal [pid, File.read("/proc/#{pid}/comm").chomp, 64], [snapshot.pid, snapshot.process.name, snapshot.process.to_h["bits"]]
      assert_equal File.read("/proc/#{pid}/maps").lines.map { |line| line[/\A\h+/].to_i(16) }, snapshot.mappings.map(&:start)
      snapshot.mappings.each do |mapping|
        assert_equal mapping.bytes, mapping.page_runs.sum(&:first) * snapshot.process.page_bytes, mapping.to_h if mapping.page_runs.any?
      end
      assert_in_delta Time.now.to_f, snapshot.time.to_f, 60
    end
  end

  # A limit on the size of files stands in for a full disk, on which the reason has no room either.
  def test_a_result_that_cannot_be_written
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      shell = 'trap "" XFSZ; ulimit -f 0; exec "$@"'
      out, err, status = run_program("/bin/sh", "-c", shell, "sh", *culet_command, "report", pid.to_s, env: NEUTRAL)
      assert_equal ["", 1], [out, status.exitstatus], err
      assert_match(/\Aculet: cannot write the result \(File too large\); make room, or name another folder in TMPDIR$/, err)
    end
  end

  def test_what_is_looked_at_stays_as_it_was
    with_program(RbConfig.ruby, "-e", "x = Array.new(50_000) { 'a' * 50 }; #{WAITING}; x") do |pid|
      before = figures(pid)
      Culet::Scope::Reader::MODES.each_key { |mode| read(pid, mode: mode) }
      assert_equal before, figures(pid)
      assert_settles("it sleeps again") { state(pid) == "S" }
    end
  end

  def test_what_a_reading_took
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      live, stopped, sliced = %i[live stopped sliced].map { |mode| read(pid, mode: mode).reading }
      assert_equal [0, 0.0, 0.0], live.values_at("pauses", "paused_seconds", "longest_pause_seconds")
      assert_equal 1, stopped["pauses"]
      assert_operator sliced["pauses"], :>=, 1
      [stopped, sliced].each do |reading|
        assert_operator reading["median_pause_seconds"], :<=, reading["longest_pause_seconds"]
        assert_operator reading["longest_pause_seconds"], :<=, reading["paused_seconds"]
        assert_operator reading["paused_cpu_seconds"], :<=, reading["cpu_seconds"]
        assert_operator reading["peak_rss_bytes"], :>, 500_000
      end
    end
  end

  def test_a_stopped_process_stays_stopped
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      Process.kill(:STOP, pid)
      assert_settles { state(pid) == "T" }
      assert_equal pid, read(pid).pid
      assert_equal "T", state(pid)
    end
  end

  def test_a_process_that_is_not_there
    error = assert_raises(Culet::Error) { Culet::Scope::Reader.new(NO_PROCESS) }
    assert_equal "there is no process #{NO_PROCESS}", error.message
  end

  def test_a_process_that_has_ended
    pid = spawn("true")
    assert_settles { state(pid) == "Z" }
    assert_match(/has ended; its parent/, assert_raises(Culet::Error) { read(pid) }.message)
  ensure
    Process.wait(pid)
  end

  # Whenever it ends: a snapshot or a sentence, at once.
  def test_processes_that_end_while_they_are_read
    20.times do |turn|
      pid = spawn(RbConfig.ruby, "--disable-gems", "-e", "sleep", out: File::NULL)
      killer = Thread.new do
        sleep 0.004 * turn
        Process.kill(:KILL, pid)
      end
      begin
        assert_equal pid, read(pid).pid
      rescue Culet::Error => e
        assert_match(/\b#{pid}\b/, e.message)
      end
      killer.join
      Process.wait(pid)
    end
  end

  # The reader's own program is killed: what it read runs on.
  def test_a_killed_reader
    with_program(RbConfig.ruby, "-e", "x = Array.new(300_000) { 'a' * 50 }; #{WAITING}; x") do |pid|
      10.times do |turn|
        reader = spawn(Culet::Native.part("reader", "culet-scope"), pid.to_s, out: File::NULL, err: File::NULL)
        sleep 0.002 * turn
        Process.kill(:KILL, reader)
        Process.wait(reader)
      end
      assert_settles { state(pid) == "S" }
      assert_equal pid, read(pid).pid
    end
  end

  def test_another_users
    skip "only root can become another user" unless Process.euid.zero?

    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); exec(*ARGV)"
      out, err, status = run_program(RbConfig.ruby, "-e", script, "--", *culet_command, "report", pid, env: NEUTRAL.merge("HOME" => "/"), chdir: "/")
      assert_equal [1, ""], [status.exitstatus, out]
      assert_match(/\Aculet: process #{pid} belongs to .*root.*\n\z/, err)
      assert_equal 1, err.lines.size
    end
  end

  def test_as_a_plain_user_ones_own
    skip "only root can become another user" unless Process.euid.zero?

    script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); " \
             "up, out = IO.pipe; pid = spawn('#{RbConfig.ruby}', '-e', 'puts :up; $stdout.flush; sleep', out: out); up.gets; " \
             "ok = system(*ARGV, pid.to_s); Process.kill(:KILL, pid); exit(ok)"
    out, = assert_success(RbConfig.ruby, "-e", script, "--", *culet_command, "report", "--json", env: NEUTRAL.merge("HOME" => "/"), chdir: "/")
    assert_operator JSON.parse(out)["rss_bytes"], :>, 1_000_000
  end

  private

  def read(pid, **options) = Culet::Scope::Reader.new(pid, **options).snapshot

  def state(pid) = Culet::Processes::Cpu.state(pid)

  # Clean pages of files count as one: whether they are shared or private is for all the programs to say that use the
  # same libraries and come and go meanwhile.
  def figures(pid)
    memory = Culet::Processes::Memory.rollup(pid)
    memory.slice("rss_bytes", "private_dirty_bytes", "shared_dirty_bytes", "swap_bytes")
          .merge("clean_bytes" => memory.values_at("private_clean_bytes", "shared_clean_bytes").sum)
  end
end
