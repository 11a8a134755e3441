# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require "culet/cli"
require "culet/cli/explain"

# `culet explain` on programs of known cause. Those that grow must be looked at in time, so that a busy machine decides:
# they are left to bin/test --all, and their rules to growth_test.
class ExplainVerbTest < Minitest::Test
  LIST = "$list = []\nkeep = Array.new(50_000) { |i| \"kept \#{i}\" * 3 }\nputs :up; $stdout.flush\n" \
         "loop { 100.times { |i| $list << \"leaked \#{i}\" * 20 }; sleep 0.02 }"
  # Two lists, of which a mended program fills one.
  LISTS = "$list, $log = [], []\nputs :up; $stdout.flush\n" \
          "loop { 20.times { |i| $list << \"leaked \#{i}\" * 20 unless ENV['MENDED']; $log << \"noted \#{i}\" * 10 }; sleep 0.02 }"
  # Workers that grow alike, each time the program gets a line.
  GROWING = <<~RUBY
    $stdout.sync = true
    workers = Array.new(2) do
      IO.popen("-", "r+") || begin
        list = []
        puts(list.push("x" * 5_000_000).size) while $stdin.gets
        exit!
      end
    end
    puts :up
    while $stdin.gets
      workers.each { |worker| worker.tap(&:puts).gets }
      puts :grown
    end
  RUBY
  STEADY = "keep = Array.new(50_000) { |i| \"kept \#{i}\" * 3 }\nputs :up; $stdout.flush\n" \
           "loop { 100.times { |i| \"garbage \#{i}\" * 20 }; sleep 0.02 }"
  # Free memory in the arenas of threads that live on; in a fiber, whose stack keeps nothing afterwards.
  ARENAS = "fill = -> { Array.new(25_000) { |i| 'x' * (#{LONG_STRING_BYTES} + i % 900) }.each_slice(40).map(&:first) }\n" \
           "threads = Array.new(4) { Thread.new { kept = Fiber.new(&fill).resume; Thread.current[:done] = true; sleep; kept } }\n" \
           "Thread.pass until threads.all? { |one| one[:done] }\nGC.start; GC.start\nputs :up; $stdout.flush; sleep".freeze
  SPARSE = "all = Array.new(2_000_000) { Object.new }\nkept = all.each_slice(400).map(&:first); all = nil\nGC.start; GC.start\nputs :up; $stdout.flush; sleep"
  # Workers that write to what they inherited.
  WRITERS = "all = Array.new(400_000) { |i| \"text \#{i}\" * 5 }\nGC.start\nready, done = IO.pipe\n" \
            "2.times { fork { all.each { |one| one.setbyte(0, 33); one.force_encoding(Encoding::BINARY) }; done.write('.'); sleep } }\n" \
            "2.times { ready.read(1) }\nputs :up; $stdout.flush; sleep"
  # Workers that free what their parent has left.
  COLLECTORS = "GC.disable\nall = Array.new(400_000) { |i| \"text \#{i}\" * 5 }\nkept = all.each_slice(2).map(&:first); all = nil\n" \
               "ready, done = IO.pipe\n" \
               "2.times { fork { GC.enable; GC.start; done.write('.'); sleep } }\n2.times { ready.read(1) }\nputs :up; $stdout.flush; sleep"
  # Blocks of C that nobody frees.
  NATIVE = "require 'fiddle'\nkeep = Array.new(50_000) { |i| \"kept \#{i}\" * 3 }\nputs :up; $stdout.flush\n" \
           "def lose = 50.times { Fiddle.malloc(2_000) }\nloop { 20.times { lose; sleep 0.02 }; GC.start }"
  AGENT = ["-I#{ROOT}/lib", "-rculet/agent"].freeze
  # Seven looks.
  SECONDS = "6s"

  def test_a_process_that_ends_meanwhile
    with_ruby(STEADY) do |pid|
      ending = Object.new
      ending.define_singleton_method(:wait) { |_| Process.kill(:KILL, pid) && false }
      error = assert_raises(Culet::Error) { Culet::Explain::Watch.new(pid, seconds: 60.0, interruption: ending).call }
      assert_match(/\Aprocess \d+ ended \d+ s into the watch; if it is killed, CULET_BLACKBOX=DIR/, error.message)
    end
  end

  def test_a_stopped_process_is_not_judged
    with_ruby(STEADY) do |pid|
      stop(pid)
      out, err, status = run_culet("explain", pid)
      assert_equal ["", "culet: process #{pid} is stopped; continue it first: kill -CONT #{pid}\n", 1], [out, err, status.exitstatus]
    end
  end

  def test_a_leak_of_ruby_objects_names_its_holder
    skip_unless_all
    with_ruby(LIST, *AGENT) do |pid|
      found = decided(pid)
      assert_equal "ruby_leak", found["verdict"], found
      assert_match(/\Aa leak of Ruby objects: global variable \$list keeps .* more a minute\z/, found["sentence"])
      rate = found["evidence"].first
      assert_equal "growth_bytes_per_minute", rate["name"]
      assert_operator rate["low"], :<=, rate["value"]
      assert_equal ["code", "$list"], found["remedies"].first.values_at("name", "line")
    end
  end

  def test_the_one_of_two_leaks_that_is_gone
    skip_unless_all
    Dir.mktmpdir do |folder|
      before = with_ruby(LISTS, *AGENT) { |pid| decided(pid) }
      File.write("#{folder}/before.json", JSON.generate(before))
      assert_equal %w[$list $log], before["remedies"].map { |one| one["line"] }, before
      with_ruby(LISTS, *AGENT, env: { "MENDED" => "1" }) do |pid|
        found = decided(pid, "--check", "#{folder}/before.json")["check"]
        assert_equal [%w[code $list]], found["applied"].map { |one| one.values_at("name", "line") }
        rates = found.values_at("before_growth_bytes_per_minute", "after_growth_bytes_per_minute")
        assert_equal before["evidence"].first["value"], rates.first
        assert_includes 1...rates.first, rates.last
      end
    end
  end

  def test_workers_that_grow_alike_count_together
    with_fed(RbConfig.ruby, "--disable-gems", "-e", GROWING) do |pid, out, feed|
      assert_equal "up\n", out.gets
      found = watched(pid, 4.0) do
        feed.puts
        assert_equal "grown\n", out.gets
      end
      assert_equal 2, found.workers.size
      found.workers.each { |worker| assert_in_delta 2, found.worker_weight(worker.pid), 0.9 }
      assert_equal 1, found.worker_weight(pid)
    end
  end

  def test_a_leak_of_native_memory
    skip_unless_all
    with_ruby(NATIVE, *AGENT) do |pid|
      found = decided(pid)
      assert_equal "native_leak", found["verdict"], found
      assert_match(/\Aa leak of native memory: .* and no Ruby object keeps it\z/, found["sentence"])
    end
  end

  def test_the_line_of_a_native_leak_by_the_profile
    skip_unless_all
    Dir.mktmpdir do |folder|
      File.write("#{folder}/lose.rb", NATIVE)
      env = { "LD_PRELOAD" => "#{ROOT}/allocator/build/libculet.so", "CULET_PROFILE" => "64k" }
      with_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/profile", "#{folder}/lose.rb", env: TestHelper::NEUTRAL.merge(env)) do |pid|
        found = decided(pid)
        assert_equal "native_leak", found["verdict"], found
        assert_match(/, allocated in .*lose\.rb:4/, found["sentence"])
        assert_match(/lose\.rb:4\z/, found["remedies"].first["line"])
      end
    end
  end

  def test_a_program_in_balance_is_no_leak
    with_ruby(STEADY, *AGENT) do |pid|
      found = explain(pid)
      # Looks have idle priority.
      found = explain(pid, "60s") if found["sentence"].include?("too few looks")
      assert_equal "none", found["verdict"], found
      next if RESIDENT_STACK # that is to be returned

      assert_match(/\Anothing is wrong: the program needs /, found["sentence"])
      assert_empty found["remedies"]
    end
  end

  def test_free_memory_of_malloc
    with_ruby(ARENAS) do |pid|
      found = explain(pid, "2s")
      assert_equal "malloc_free", found["verdict"], found
      names = found["remedies"].map { |one| one["name"] }
      assert_empty %w[allocator trim arenas] - names
      allocator = found["remedies"].find { |one| one["name"] == "allocator" }
      assert_operator allocator["low_bytes"], :<=, allocator["saves_bytes"]
      assert_operator allocator["saves_bytes"], :<=, found["total_bytes"]
      assert_equal found["remedies"], found["remedies"].sort_by { |one| -one["saves_bytes"] }
    end
  end

  def test_a_remedy_in_place_is_not_advised
    with_ruby(ARENAS, env: { "MALLOC_ARENA_MAX" => "2" }) do |pid|
      refute_includes explain(pid, "2s")["remedies"].map { |one| one["name"] }, "arenas"
    end
    with_ruby(ARENAS, env: { "LD_PRELOAD" => "#{ROOT}/allocator/build/libculet.so" }) do |pid|
      found = explain(pid, "2s")
      assert_empty found["remedies"].map { |one| one["name"] } & %w[allocator trim arenas], found
      assert_operator found["total_bytes"], :<, 80_000_000
    end
  end

  def test_a_sparse_ruby_heap
    with_ruby(SPARSE) do |pid|
      found = explain(pid, "2s")
      assert_equal "ruby_heap", found["verdict"], found
      assert_includes found["remedies"].map { |one| one["name"] }, "compact"
    end
    with_ruby(SPARSE, env: INITIAL_HEAP) do |pid|
      found = explain(pid, "2s")
      assert_includes found["sentence"], "#{INITIAL_HEAP.keys.first} is set"
      assert_includes found["remedies"].map { |one| one["line"] }, "unset #{INITIAL_HEAP.keys.first}"
    end
  end

  def test_sharing_that_workers_lose
    with_ruby(WRITERS) do |pid|
      found = explain(pid, "2s")
      assert_equal ["sharing", 3], found.values_at("verdict", "processes"), found
      refute_includes found["remedies"].map { |one| one["name"] }, "warmup", "no warm-up keeps them from writing"
    end
    with_ruby(COLLECTORS) do |pid|
      found = explain(pid, "2s")
      warmup = found["remedies"].find { |one| one["name"] == "warmup" }
      assert warmup, found
      assert_operator warmup["saves_bytes"], :>, 30_000_000, "two workers"
    end
  end

  def test_the_report_the_page_and_the_check
    with_ruby(ARENAS) do |pid|
      Dir.mktmpdir do |folder|
        out, = assert_culet_success("explain", pid, "--for", "2s", "--html", "#{folder}/page.html", env: TestHelper::NEUTRAL)
        assert_match(/^Malloc keeps .* of free memory/, out)
        assert_match(/^1\. Use culet's allocator, .*: saves .* \(.* to .*\)$/, out)
        assert_match(/^     culet run -- COMMAND$/, out)
        page = File.read("#{folder}/page.html")
        assert_match(%r{<h1>Malloc keeps .*</h1>}, page)
        assert_operator page.scan("<polygon").size, :>=, 3
        refute_match(/<script|http-equiv="refresh"|src=/, page)
        check(pid, folder)
      end
    end
  end

  def test_bad_input
    assert_sentence(/no process given/, "explain", status: 2)
    assert_sentence(/give one process/, "explain", "1", "2", status: 2)
    assert_sentence(/does not run a command/, "explain", "--", "true", status: 2)
    assert_sentence(/there is no file|no such/i, "explain", "1", "--check", "/no/such/file")
    Dir.mktmpdir do |folder|
      File.write("#{folder}/a.json", "{}")
      assert_sentence(/total_bytes|not/, "explain", "1", "--check", "#{folder}/a.json")
      File.write("#{folder}/b.json", "no")
      assert_sentence(/is no document of `culet explain --json`/, "explain", "1", "--check", "#{folder}/b.json")
    end
    gone = spawn("true")
    Process.wait(gone)
    _, err, status = run_culet("explain", gone)
    assert_equal [1, 1], [status.exitstatus, err.lines.size]
  end

  # The copy of a look that was broken off.
  def test_a_process_of_another_user_is_refused_before_the_watch
    skip "only root can start programs of other users" unless Process.uid.zero?

    with_program(RbConfig.ruby, "--disable-gems", "-e", WAITING) do |pid|
      out, err, status = run_program("setpriv", "--reuid=65534", "--clear-groups", *culet_command, "explain", pid, env: NEUTRAL.merge("HOME" => "/tmp"))
      assert_equal ["", "culet: process #{pid} belongs to root; run culet as that user or as root\n", 1], [out, err, status.exitstatus]
    end
  end

  def test_a_copy_that_has_not_ended_is_told_of
    { "shop" => 1, "another program" => 0 }.each do |title, times|
      copy = "$0 = '#{title}'; File.write('/proc/self/comm', 'culet-retain'); puts Process.pid; $stdout.flush; sleep"
      with_started(RbConfig.ruby, "--disable-gems", "-e", "$0 = 'shop'; Process.wait(fork { fork { #{copy} }; exit! }); sleep") do |pid, out|
        pid_of_copy = Integer(out.gets)
        problems = Culet::Explain::Watch.new(pid, seconds: 0.1, interruption: Culet::Interruption.new).call.problems
        assert_equal times, problems.grep(/forked copy/).size, title
        assert_nil Culet::Live::WatchedProcess.find(pid_of_copy)
      end
    end
  end

  def test_a_ruby_process_that_ended_is_told_of_and_a_command_is_not
    { "fork { $stdin.gets }" => 1, "spawn('sh', '-c', 'read line')" => 0 }.each do |child, count|
      code = "$stdout.sync = true; #{child}; puts :up; Process.wait; puts :ended; sleep"
      with_fed(RbConfig.ruby, "--disable-gems", "-e", code) do |pid, out, feed|
        assert_equal "up\n", out.gets
        ended = nil
        found = watched(pid, 2.0) { ended ||= feed.puts || out.gets }
        assert_equal "ended\n", ended
        assert_equal count, found.problems.grep(/\A(?:a Ruby process|\d Ruby processes) ended during/).size, found.problems
      end
    end
  end

  def test_the_last_reading_is_that_of_the_tree_so_that_a_process_is_paused_once
    with_program(RbConfig.ruby, "--disable-gems", "-e", "puts :up; $stdout.flush; sleep") do |pid|
      found = Culet::Explain::Watch.new(pid, seconds: 1.0, interruption: Culet::Interruption.new).call
      assert found.members.first.snapshot.equal?(found.processes.first.snapshot)
    end
  end

  private

  # @yield between the looks at the process
  # @return [Culet::Diagnosis::Observation]
  def watched(pid, seconds)
    pauses = Object.new
    pauses.define_singleton_method(:wait) do |pause|
      yield
      sleep(pause)
      false
    end
    Culet::Explain::Watch.new(pid, seconds: seconds, interruption: pauses).call
  end

  def with_ruby(code, *options, env: {}, &block)
    with_program(RbConfig.ruby, *options, "-e", code, env: TestHelper::NEUTRAL.merge(env), &block)
  end

  def explain(pid, seconds = SECONDS)
    out, = assert_culet("explain", pid, "--for", seconds, "--json")
    assert_operator out.bytesize, :<=, 4096
    JSON.parse(out)
  end

  # On a busy machine the looks of a short watch come too late.
  #
  # @return [Hash] of the first watch of some that is not open
  def decided(pid, *words)
    documents = %w[6s 15s 40s].lazy.map { |seconds| JSON.parse(assert_culet("explain", pid, "--for", seconds, "--json", *words).first) }
    documents.find { |found| found["verdict"] != "unknown" } || flunk("no watch has decided")
  end

  # The prediction of a program that has not changed.
  def check(pid, folder)
    assert_culet("explain", pid, "--for", "1s", "--json", "--out", "#{folder}/before.json")
    out, = assert_culet("explain", pid, "--for", "1s", "--check", "#{folder}/before.json", "--json")
    found = JSON.parse(out)["check"]
    assert_empty found["applied"]
    assert_in_delta 0, found["saved_bytes"], 2_000_000
  end
end
