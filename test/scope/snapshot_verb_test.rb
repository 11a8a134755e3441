# frozen_string_literal: true

require_relative "scope_helper"

# `culet snapshot`, and Culet.snapshot from inside.
class SnapshotVerbTest < Minitest::Test
  include ScopeHelper

  def test_one_snapshot
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      in_directory do |directory|
        out, err, status = run_culet("snapshot", pid.to_s, chdir: directory, env: NEUTRAL)
        assert_equal [0, ""], [status.exitstatus, out], err
        assert_match(/\Aculet: wrote culet-#{pid}\.snapshot \(.*B\)\n\z/, err)
        path = "#{directory}/culet-#{pid}.snapshot"
        assert_equal 0o600, File.stat(path).mode & 0o777
        assert_equal pid, Culet::Scope::SnapshotFile.load(path).first.pid
        assert_equal ["culet-#{pid}.snapshot"], Dir.children(directory)
      end
    end
  end

  # What it tells later is what a report tells now.
  def test_a_report_of_it
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      in_directory do |directory|
        assert_equal({ "path" => "#{directory}/a", "snapshots" => 1, "complete" => true }, json("snapshot", pid.to_s, "--out", "#{directory}/a"))
        kept = json("report", "#{directory}/a")
        now = json("report", pid.to_s)
        %w[pid name rss_bytes allocator levels unexplained_bytes].each { |key| assert_equal now[key], kept[key], key }
      end
    end
  end

  def test_a_series
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      in_directory do |directory|
        document = json("snapshot", pid.to_s, "--every", "0.2s", "--for", "0.5", "--out", "#{directory}/series")
        assert_equal [3, true], document.values_at("snapshots", "complete")
        times = Culet::Scope::SnapshotFile.load("#{directory}/series").map(&:time)
        assert_equal times.sort, times
        assert_equal 3, json("report", "#{directory}/series")["snapshots"].size
        assert_equal pid, json("diff", "#{directory}/series").dig("after", "pid")
        out, = run_culet("report", "#{directory}/series", env: NEUTRAL)
        assert_match(/^This is the last of 3 snapshots; --json prints all.$/, out)
      end
    end
  end

  def test_a_series_of_a_process_that_ends
    directory = new_folder
    ends = "puts :up; $stdout.flush; sleep 0.05 until Dir.glob(ARGV[0] + '/.*.part').any? { |file| File.size(file) > 3000 }"
    with_program(RbConfig.ruby, "-e", ends, directory) do |pid|
      out, err, status = run_culet("snapshot", pid.to_s, "--every", "0.1", "--for", "1h", "--out", "#{directory}/series", env: NEUTRAL)
      assert_equal [1, ""], [status.exitstatus, out]
      assert_match(%r{^culet: .*process #{pid}.*; #{directory}/series has the snapshots up to then$}, err)
      assert_operator Culet::Scope::SnapshotFile.load("#{directory}/series").size, :>, 0
      assert_equal ["series"], Dir.children(directory)
    end
  end

  def test_a_series_that_is_interrupted_is_kept
    %i[INT TERM].each do |signal|
      in_directory do |directory|
        with_program(RbConfig.ruby, "-e", WAITING) do |pid|
          status = interrupted(signal, "snapshot", pid.to_s, "--every", "0.1", "--out", "#{directory}/series") do
            Dir.glob("#{directory}/.*.part").any? { |file| File.size(file) > 3000 }
          end
          assert_equal 128 + Signal.list.fetch(signal.to_s), status.exitstatus
          assert_operator Culet::Scope::SnapshotFile.load("#{directory}/series").size, :>, 0
          assert_equal ["series"], Dir.children(directory)
          assert_settles("it sleeps again") { Culet::Processes::Cpu.state(pid) == "S" }
        end
      end
    end
  end

  def test_a_full_disk_and_places_that_cannot_be_written
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      assert_sentence(%r{cannot write /dev/full: no space left}, "snapshot", pid.to_s, "--out", "/dev/full")
      assert_sentence(%r{cannot write /nowhere/x: the directory /nowhere does not exist}, "snapshot", pid.to_s, "--out", "/nowhere/x")
      assert_sentence(/is a directory; give a file/, "snapshot", pid.to_s, "--out", ROOT)
    end
  end

  def test_wrong_usage
    assert_sentence(/no process given/, "snapshot", status: 2)
    assert_sentence(/a snapshot has one process; give one number or name/, "snapshot", "1", "2", status: 2)
    assert_sentence(/"0" is not a process number/, "snapshot", "0", status: 2)
    assert_sentence(/--for needs --every/, "snapshot", "1", "--for", "1h", status: 2)
    assert_sentence(/--every takes a duration, e\.g\. 10s, 5m or 1h, at most 366d, not "often"/, "snapshot", "1", "--every", "often", status: 2)
    assert_sentence(/--live and --stop cannot be combined/, "snapshot", "1", "--live", "--stop", status: 2)
    assert_sentence(/does not run a command/, "snapshot", "--", "true", status: 2)
    assert_sentence(/there is no process 999999999/, "snapshot", "999999999")
  end

  def test_from_inside
    directory = new_folder
    script = "require 'culet'; threads = Array.new(3) { Thread.new { sleep } }; puts Culet.snapshot(ARGV[0]); threads.each(&:kill)"
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, "#{directory}/own", env: NEUTRAL)
    assert_equal ["#{directory}/own\n", ""], [out, err]
    assert_predicate status, :success?
    snapshot = Culet::Scope::SnapshotFile.load("#{directory}/own").first
    assert_operator snapshot.process.to_h["threads"], :>=, 4
    assert_equal 0o600, File.stat("#{directory}/own").mode & 0o777
  end

  # A server's loop that waits for whichever child ends first may take our program's status.
  def test_from_inside_beside_a_loop_that_waits_for_any_child
    directory = new_folder
    script = <<~RUBY
      require "culet"
      waiter = Thread.new do
        loop { Process.wait(-1) }
      rescue Errno::ECHILD
        sleep 0.001
        retry
      end
      5.times { Culet.snapshot(ARGV[0]) }
      begin
        Culet.snapshot("/nowhere/x")
      rescue Culet::Error => e
        puts e.message
      end
      waiter.kill
    RUBY
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, "#{directory}/own", env: NEUTRAL)
    assert_equal ["cannot write /nowhere/x: no such file or directory\n", ""], [out, err]
    assert_predicate status, :success?
    assert_equal 1, Culet::Scope::SnapshotFile.load("#{directory}/own").size
  end

  # It stays a process of the standard library.
  def test_from_inside_no_gem_is_loaded
    directory = new_folder
    script = "require 'culet'; Culet.snapshot(ARGV[0]); puts $LOADED_FEATURES.grep(/terminal|vega|chunky/)"
    out, err, = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, "#{directory}/own", env: NEUTRAL)
    assert_equal ["", ""], [out, err]
  end

  private

  # Starts the command line, and sends the signal once the block says that it is at work.
  #
  # @return [Process::Status]
  def interrupted(signal, *words, &at_work)
    pid = spawn(NEUTRAL, *culet_command, *words, out: File::NULL, err: File::NULL, pgroup: true)
    assert_settles("it is at work", &at_work)
    Process.kill(signal, -pid)
    Process.wait2(pid).last
  end
end
