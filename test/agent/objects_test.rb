# frozen_string_literal: true

require "agent/agent_helper"
require "culet/system/processes/cpu"
require "timeout"

# A process with the agent, asked from outside.
class AgentObjectsTest < Minitest::Test
  include AgentHelper

  # Wherever the main thread sleeps, it is woken, answers, and sleeps on.
  {
    "sleeps" => "sleep",
    "waits for a queue" => "Thread.new { sleep }; Queue.new.pop",
    "waits for a thread" => "Thread.new { sleep }.join",
    "waits for a socket" => "require 'socket'; TCPServer.new('127.0.0.1', 0).accept",
    "waits in select" => "$pipe = IO.pipe; IO.select($pipe.first(1))",
    "waits for a lock" => "lock = Mutex.new; Thread.new { lock.synchronize { sleep } }; Thread.pass until lock.locked?; lock.lock",
    "waits for a child" => "Process.wait(spawn('sleep', '600'))",
    "runs" => "loop { rand }"
  }.each do |what, script|
    define_method(:"test_a_process_answers_whose_main_thread_#{what.tr(" ", "_")}") do
      with_agent("#{SAY_UP}; #{script}; abort 'woken for good'") do |pid|
        3.times { assert_operator ask(pid).fact("objects")["count"], :>, 1000 }
        assert File.exist?("/proc/#{pid}")
      end
    end
  end

  def test_the_verb_writes_a_snapshot_that_report_and_diff_show
    with_agent("$kept = Array.new(50_000) { 'x' * 1000 }; #{SAY_UP}; sleep") do |pid|
      in_directory do |directory|
        out, err = assert_culet_success("snapshot", "--objects", pid, "--json", chdir: directory)
        assert_match(/\Aculet: wrote culet-#{pid}\.snapshot \(\S+ kB\); [\d,]+ objects counted in \S+ ms\n\z/, err)
        written = JSON.parse(out)
        path = File.join(directory, written["path"])
        assert_equal [0o600, true, 1], [File.stat(path).mode & 0o777, written["complete"], written["snapshots"]]
        assert_operator written["objects"], :>, 50_000
        assert_report(path)
        assert_difference(path, pid)
      end
    end
  end

  def test_the_verb_by_its_earlier_name
    said = "culet: `culet signal` is now `culet snapshot --objects`; the next minor version removes the old name\n"
    with_agent("#{SAY_UP}; sleep") do |pid|
      in_directory do |directory|
        out, err = assert_culet_success("signal", pid, "--no-data", "--json", chdir: directory)
        assert_equal [said, 2], [err.lines.first, err.lines.size]
        assert_equal true, JSON.parse(out)["complete"]
      end
    end
    [%w[signal --help], %w[help signal]].each do |words|
      assert_equal [culet("snapshot", "--help").first, said, 0], culet(*words), words
    end
  end

  def test_fifty_questions_in_a_row_leave_nothing_behind
    with_agent("#{SAY_UP}; sleep") do |pid|
      ask(pid)
      before = possessions(pid)
      counts = Array.new(50) { ask(pid).fact("objects")["count"] }
      assert_equal before, possessions(pid)
      assert_operator counts.max, :<, 2 * counts.min
    end
  end

  def test_many_ask_at_once_beside_threads_that_allocate
    askers = all_tests? ? 6 : 3
    with_agent("4.times { Thread.new { loop { Array.new(100) { 'x' * rand(2000) } } } }; #{SAY_UP}; sleep") do |pid|
      told = Array.new(askers) { Thread.new { Array.new(2) { ask(pid, wait_seconds: 60.0) } } }.flat_map(&:value)
      assert_equal 2 * askers, told.count { |one| one.fact("objects")["complete"] }
    end
  end

  def test_under_gc_stress
    with_agent("GC.stress = true; #{SAY_UP}; loop { 'x' * 100 }") { |pid| 2.times { assert ask(pid, wait_seconds: 60.0).fact("objects")["complete"] } }
  end

  # An exception that is meant for the main thread must reach it, also when it comes while it answers.
  def test_timeouts_of_the_program_are_not_lost
    script = <<~RUBY
      require "timeout"
      #{SAY_UP}
      150.times do
        Timeout.timeout(0.01) { sleep }
        abort "no timeout"
      rescue Timeout::Error
        next
      end
      puts :done
    RUBY
    with_started(*CARRYING, "-e", script) do |pid, output|
      output.gets
      asked = Thread.new { sleep_until_gone(pid) }
      assert_equal "done\n", output.gets
      assert_predicate await_end(pid), :success?
      assert_operator asked.value, :>, 1
    end
  end

  def test_forked_workers_answer_for_themselves
    script = <<~RUBY
      $kept = Array.new(1000) { "x" * 1000 }
      reader, writer = IO.pipe
      3.times { |i| fork { $own = Array.new((i + 1) * 10_000) { "y" * 100 }; Thread.new { sleep }; GC.start; writer.write("."); sleep } }
      reader.read(3)
      GC.start # garbage is counted too, and is not the same everywhere
      #{SAY_UP}
      Process.waitall
    RUBY
    with_agent(script) do |pid|
      master, *workers = [pid, *children(pid)].map { |one| type(ask(one), "T_STRING")["count"] }
      workers.sort.each_with_index { |count, index| assert_in_delta master + ((index + 1) * 10_000), count, 3000 }
      gone, *others = children(pid)
      Process.kill(:KILL, gone)
      others.each { |one| assert ask(one).fact("objects")["complete"] }
      assert ask(pid).fact("objects")["complete"]
    end
  end

  def test_children_of_children_and_of_threads_answer
    with_agent("Thread.new { fork { fork { #{SAY_UP}; sleep }; sleep } }.join; sleep") do |pid|
      child = children(pid).first
      family = [pid, child, *children(child)]
      assert_equal 3, family.size
      family.each { |one| assert ask(one).fact("objects")["complete"] }
    end
  end

  def test_a_daemon_answers
    in_directory do |directory|
      file = File.join(directory, "pid")
      run_program(*CARRYING, "-e", "Process.daemon; File.write(ARGV[0] + '.part', Process.pid); File.rename(ARGV[0] + '.part', ARGV[0]); sleep", file)
      pid = pid_in(file)
      assert ask(pid).fact("objects")["complete"]
    ensure
      Process.kill(:KILL, pid) if pid
    end
  end

  def test_nothing_is_left_once_it_has_ended
    pid = nil
    with_agent("#{SAY_UP}; sleep") { |one| ask(pid = one) }
    refute_match(%r{culet-agent/#{pid}/}, File.read("/proc/net/unix"))
    assert_sentence(/there is no process #{pid}/, "snapshot", "--objects", pid)
  end

  # Whichever moment the process ends at: an answer or a sentence, in bounded time.
  def test_ends_while_it_is_asked
    with_agent(BLOCKED) do |pid|
      await_block(pid)
      asking = Thread.new { assert_raises(Culet::Error) { ask(pid, wait_seconds: 60.0) } }
      Thread.pass until asking.stop?
      sleep 0.2
      Process.kill(:KILL, pid)
      assert_match(/process #{pid} (ended before it answered|has ended|has no agent)/, asking.value.message)
    end
    10.times do |index|
      with_agent("#{SAY_UP}; sleep #{0.005 * index}") do |pid|
        ask(pid)
      rescue Culet::Error => e
        assert_match(/process #{pid}\b/, e.message)
      end
    end
  end

  # A program in a call of C code that lets nobody else run.
  #
  # Waiting for a lock that is held goes on when a signal comes.
  def self.blocked(seconds)
    <<~RUBY
      require "fiddle"
      call = lambda do |name, *arguments|
        Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments.map { Fiddle::TYPE_VOIDP }, Fiddle::TYPE_INT, need_gvl: true).call(*arguments)
      end
      lock = "\\0" * 128
      call.("pthread_mutex_lock", lock)
      time = [Time.now.to_i + #{seconds}, 0].pack("l!2")
      #{SAY_UP}
      call.("pthread_mutex_timedlock", lock, time)
    RUBY
  end

  BLOCKED = blocked(600)

  # It says that it is up before it blocks: waits until its main thread has slept for a while.
  def await_block(pid)
    asleep = 0
    Timeout.timeout(PATIENCE_SECONDS) do
      until asleep == 40
        asleep = Culet::Processes::Cpu.state(pid) == "S" ? asleep + 1 : 0
        sleep 0.005
      end
    end
    true
  end

  def test_a_main_thread_blocked_in_c_code_is_said
    sentence = ->(pid) { /process #{pid} refuses: its main thread did not run Ruby code in time/ }
    with_agent(BLOCKED) { |pid| await_block(pid) && assert_sentence(sentence.call(pid), "snapshot", "--objects", pid, "--wait", "0.3s") }
  end

  # On a busy machine the process may no longer be blocked when the first question comes.
  def test_after_a_question_that_was_given_up_the_next_one_is_answered
    given_up = [8, 60].any? do |seconds|
      with_agent("#{self.class.blocked(seconds)}; sleep") do |pid|
        await_block(pid)
        gives_up?(pid).tap { assert ask(pid, wait_seconds: 90.0).fact("objects")["complete"] }
      end
    end
    assert given_up, "each question was answered"
  end

  def test_a_process_without_the_agent
    with_program(RbConfig.ruby, "-e", TestHelper::WAITING) do |pid|
      assert_sentence(/process #{pid} has no agent; start it with RUBYOPT=-r\$\(culet lib agent\)/, "snapshot", "--objects", pid)
    end
  end

  def test_a_stopped_process_is_said
    with_agent("#{SAY_UP}; sleep") do |pid|
      stop(pid)
      assert_sentence(/process #{pid} is stopped; continue it first: kill -CONT #{pid}/, "snapshot", "--objects", pid)
    end
  end

  def test_wrong_usage
    assert_sentence(/no process given/, "snapshot", "--objects", status: 2)
    assert_sentence(/"0" is not a process number/, "snapshot", "--objects", "0", status: 2)
    assert_sentence(/--wait takes a duration/, "snapshot", "--objects", "1", "--wait", "long", status: 2)
    assert_sentence(/--wait needs --objects/, "snapshot", "1", "--wait", "1s", status: 2)
    assert_sentence(/--data needs --objects/, "snapshot", "1", "--no-data", status: 2)
    assert_sentence(/--objects counts once; leave out --every/, "snapshot", "1", "--objects", "--every", "1s", status: 2)
    assert_sentence(/--limit takes ten minutes/, "snapshot", "--objects", "1", "--limit", "1h", status: 2)
  end

  private

  def gives_up?(pid)
    ask(pid, wait_seconds: 0.1)
    false
  rescue Culet::Error => e
    assert_match(/its main thread did not run Ruby code in time/, e.message)
    true
  end

  def assert_report(path)
    report = json("report", path)
    holdings = report["malloc_holdings"]
    assert_equal report["rss_bytes"], report["levels"].values.sum
    assert_equal ["malloc_used", report["levels"]["malloc_used"]], holdings.values_at("level", "level_bytes")
    assert_equal holdings["level_bytes"], holdings["ruby_bytes"] + holdings["rest_bytes"]
    assert_equal holdings["ruby_bytes"], holdings["types"].values.sum
    assert_operator holdings["types"]["T_STRING"], :>=, 50_000 * 1001
    text, err, = run_culet("report", path)
    assert_empty err
    assert_match(/^malloc: in use, resident .*\n  strings  +5\d\.\d/, text)
    assert_match(/^  known to C code only /, text)
    assert_match(/^C objects \(T_DATA\) /, text)
    assert_match(/counted in \S+ ms, while Ruby was paused/, text)
  end

  def assert_difference(path, pid)
    assert_culet_success("snapshot", "--objects", pid, "--out", "#{path}.later")
    strings = json("diff", path, "#{path}.later")["objects"]["T_STRING"]
    assert_operator strings["malloc"]["grown_bytes"].abs, :<, 1_000_000
    assert_operator strings["count"]["after"], :>, 50_000
  end

  def pid_in(file)
    assert_settles("the daemon comes up") { File.exist?(file) }
    File.read(file).to_i
  end

  # @return [Integer] how often the process answered
  def sleep_until_gone(pid)
    answered = 0
    loop do
      ask(pid)
      answered += 1
    end
  rescue Culet::Error
    answered
  end
end
