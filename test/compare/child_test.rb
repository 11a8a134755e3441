# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare"

class CompareChildTest < Minitest::Test
  Compare = Culet::Compare

  def test_wall_and_cpu_seconds_of_the_tree
    child = start("fork { t = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.4; " \
                  "nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < t }; Process.wait; sleep 0.3")
    assert child.wait(PATIENCE_SECONDS)
    child.stop
    assert_operator child.cpu_seconds, :>=, 0.4
    assert_operator child.cpu_seconds, :<, child.wall_seconds
    assert_operator child.wall_seconds, :>=, 0.7
    assert_nil child.failure
  end

  def test_kills_what_left_its_parent_its_group_and_its_session
    directory = new_folder
    note = File.join(directory, "pid")
    child = start("Process.daemon; File.write('#{note}.new', $$.to_s); File.rename('#{note}.new', '#{note}'); sleep 60")
    assert child.wait(PATIENCE_SECONDS)
    daemon = await_pid(note)
    child.stop
    refute running?(daemon), "the daemon #{daemon} is still there"
  end

  def test_kills_a_process_that_ignores_sigterm
    directory = new_folder
    note = File.join(directory, "pid")
    child = start("trap('TERM') {}; trap('INT') {}; File.write('#{note}.new', $$.to_s); File.rename('#{note}.new', '#{note}'); sleep 60")
    await_pid(note)
    child.stop(grace_seconds: 0.2)
    assert_equal Signal.list["KILL"], child.status.termsig
    assert_equal "was killed by SIGKILL", child.failure
  end

  # SIGKILL leaves culet no time to end what it has started.
  def test_ends_with_a_culet_that_is_killed
    code = "child = Culet::Benchmark::Child.new(command: [RbConfig.ruby, '--disable-gems', '-e', 'fork { sleep }; sleep'], environment: ENV.to_h)\n" \
           "sleep 0.01 until child.descendants.refresh.size == 2\nputs child.descendants.alive.join(' '); $stdout.flush; sleep"
    pids = IO.popen([RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/tools/compare", "-e", code]) do |culet|
      culet.gets.split.map(&:to_i).tap { Process.kill(:KILL, culet.pid) }
    end
    assert_equal 2, pids.size
    assert_settles("the program and its child end") { pids.none? { |pid| running?(pid) } }
  ensure
    pids.to_a.each { |pid| Process.kill(:KILL, pid) if running?(pid) }
  end

  # The shell that waits for the end of culet fails where it has killed a group that is gone.
  def test_kills_no_group_at_the_usual_end
    child = start("")
    assert child.wait(PATIENCE_SECONDS)
    child.stop
    assert_predicate Process.last_status, :success?
  end

  def test_counts_the_cpu_time_of_a_worker_nobody_waited_for
    child = start("r, w = IO.pipe; fork { t = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 1; " \
                  "nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < t; w.puts; loop {} }; r.gets; exit!(0)")
    assert child.wait(PATIENCE_SECONDS)
    rest = child.stop
    assert_operator rest, :>, 0.9
    assert_operator child.cpu_seconds, :<, rest
  end

  def test_leaves_others_of_the_same_program_alone
    bystander = spawn(RbConfig.ruby, "-e", "sleep 60", pgroup: true)
    child = start("sleep 60")
    child.stop
    assert running?(bystander)
  ensure
    Process.kill("KILL", bystander)
    Process.wait(bystander)
  end

  def test_the_line_that_tells_most
    assert_match(/boom \(ArgumentError\)\z/, diagnostic("def a = raise(ArgumentError, 'boom'); def b = a; b"))
    assert_match(/\[BUG\]/, diagnostic("Process.kill(:SEGV, $$); sleep"))
    assert_equal "last", diagnostic("$stderr.puts 'first', 'last', ''; exit 1")
    assert_equal "culet: double free", diagnostic("$stderr.puts 'first', 'culet: double free', 'more'; exit 1")
    assert_nil diagnostic("exit 1")
    assert_operator diagnostic("$stderr.print 'x' * 100_000, \"\\xff\\n\"; exit 1").size, :<=, 200
  end

  def test_how_it_ended
    child = start("exit 3").tap { |one| one.wait(PATIENCE_SECONDS) }
    assert_equal "exited with status 3", child.failure
    assert_nil child.failure(allowed: [3])
  ensure
    child.stop
  end

  def test_no_such_program
    error = assert_raises(Culet::Error) { Culet::Benchmark::Child.new(command: ["culet-has-no-such-program"], environment: ENV.to_h) }
    assert_equal "cannot run culet-has-no-such-program: no such program", error.message
  end

  private

  def start(script)
    Culet::Benchmark::Child.new(command: [RbConfig.ruby, "--disable-gems", "-e", script], environment: ENV.to_h)
  end

  def diagnostic(script)
    child = start(script)
    assert child.wait(PATIENCE_SECONDS), "the program did not end"
    child.stop
    child.diagnostic
  end

  def await_pid(note)
    assert_settles("the program starts") { File.exist?(note) }
    File.read(note).to_i
  end

  def running?(pid) = Culet::Processes::Cpu.alive?(pid)
end
