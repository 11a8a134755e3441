# frozen_string_literal: true

require_relative "box_helper"
require "timeout"
require "culet/scope"
require "culet/model/sampler"
require "culet/tools/report"

# What is left of a program after a SIGKILL.
class AutopsyKillTest < Minitest::Test
  include TestHelper
  include BoxHelper

  # Readings are written each second; memory that grows in between is followed if the profile is on. A block of malloc has
  # 3,136 bytes, which is a size class, so that the profile counts what the program prints, and its slots.
  LEAK = <<~RUBY.freeze
    require "culet/profile"
    $kept = []
    def leak = $kept << ("x" * 3135)
    Culet::Profile.label(endpoint: "GET /small") { Array.new(100) { Object.new } }
    Culet::Profile.label(endpoint: "GET /orders/:id") do
      Culet::Profile.label(endpoint: "orders#show") { 8000.times { leak } }
      #{BoxHelper.recorded("profiles")}
      puts $kept.size * (3136 + 40)
      $stdout.flush
      Process.kill(:KILL, $$)
      sleep
    end
  RUBY

  def test_the_site_and_the_request_are_named
    out, _, status = run_boxed(LEAK, env: { "CULET_PROFILE" => "8k", "LD_PRELOAD" => MALLOC })
    assert_equal "KILL", Signal.signame(status.termsig)
    report = autopsy(@folder)
    line = report["profile"]["lines"].first
    assert_equal "-e:3", line["name"]
    assert_in_delta Integer(out), line["bytes"], 0.1 * Integer(out)
    assert_equal ["endpoint=orders#show"], report["running"].map { |one| one["label"] }
    assert_equal ["endpoint=GET /small"], report["finished"].map { |one| one["label"] }
    assert_operator report["running"].first["age_seconds"], :>=, 0
    assert_operator report["finished"].first["objects"], :>=, 100
  end

  # Events, notes and sites are written all the time. At any moment at most one record of each writer is not whole.
  def test_kills_at_any_moment
    code = <<~RUBY
      require "culet/profile"
      kept = []
      Thread.new { loop { Culet::Profile.label(job: "A") { kept << "x" * 500 } } }
      count = 0
      loop do
        Culet::Profile.label(endpoint: "B") { Culet::Profile.label(endpoint: "C") { kept << "y" * 700 } }
        Culet::BlackBox.step("trim", freed_bytes: count += 1)
        kept.clear if kept.size > 20_000
        puts "ready" if count == 200
        $stdout.flush
      end
    RUBY
    (all_tests? ? 100 : 6).times do
      with_program(RbConfig.ruby, "-I#{LIBRARY}", "-rculet/auto", "-e", code, env: { "CULET_BLACKBOX" => @folder, "CULET_PROFILE" => "4k", "LD_PRELOAD" => MALLOC }) do |pid|
        sleep(rand * 0.3)
        Process.kill(:KILL, pid)
        Timeout.timeout(PATIENCE_SECONDS) { Thread.pass until Culet::BlackBox::Folder.unlocked?(boxes.first) }
      end
      assert_whole(box)
      FileUtils.rm(boxes)
    end
  end

  # @param one [Box]
  def assert_whole(one)
    assert_operator one.readings.size, :>=, 1
    assert_operator one.notes.size, :>=, 63
    steps = one.notes.map(&:bytes)
    assert(steps.each_cons(2).all? { |former, later| later == former + 1 }, "one of the middle is missing")
    ended = one.events.select(&:ended_at)
    assert_includes 126..128, ended.size
    assert_empty ended.map(&:label) - ["job=A", "endpoint=C"]
    assert_operator one.events.reject(&:ended_at).size, :<=, 2
    refute_nil findings(one).profile
  end

  def test_levels_add_up_to_the_resident_size
    run_boxed("#{BoxHelper.recorded("readings")}; Process.kill(:KILL, $$); sleep", env: { "LD_PRELOAD" => MALLOC })
    report = autopsy(boxes.first)
    assert_operator report["rss_bytes"], :>, 1 << 20
    assert_equal report["rss_bytes"], report["levels"].values.sum
    assert_operator report["levels"]["malloc_used"], :>, 0
    assert_operator report["gc"]["slots"], :>, 0
  end

  # Memory in use and free, in arenas of threads too, some of it returned, and some never touched.
  HEAP = <<~RUBY.freeze
    fill = ->(count) { Array.new(count) { |i| "x" * (#{LONG_STRING_BYTES} + (i % 900)) } }
    kept = Array.new(4) { Thread.new { fill.call(12_000).each_slice(3).map(&:first) } }.map(&:value)
    untouched = Array.new(24) { Thread.new { sleep } }
    objects = Array.new(200_000) { Object.new }.each_slice(2).map(&:first)
    fill.call(30_000).clear
    4.times { GC.start }
    Culet.trim if ARGV.first == "trim"
    puts :up
    $stdout.flush
    sleep
  RUBY

  # The box and culet top have the levels of the report, within 4 % of the resident size.
  def test_levels_are_those_of_the_report
    { "glibc" => ["", ""], "glibc, trimmed" => ["", "trim"], "culet" => [MALLOC, ""] }.each do |name, (library, word)|
      # From Ruby 3.3 on malloc serves these stacks, and a box counts blocks with a mapping of their own as resident.
      env = { "CULET_BLACKBOX" => @folder, "CULET_TRIM" => "off", "LD_PRELOAD" => library, "RUBY_THREAD_VM_STACK_SIZE" => "65536" }
      with_program(RbConfig.ruby, "--disable-gems", "-I#{LIBRARY}", "-rculet/agent", "-e", HEAP, word, env: env) do |pid|
        differences = nil
        # Free memory is returned meanwhile, and malloc's blocks are counted the less often the longer it takes.
        deadline = Time.now + PATIENCE_SECONDS
        loop do
          ready = Time.now
          sleep 0.1 until box.readings.last&.malloc_time.to_i > ready.to_f * 1e9 || Time.now > deadline
          break if (differences = differences(pid)).empty?

          flunk "#{name}: #{differences.join("; ")}" if Time.now > deadline
        end
      end
      FileUtils.rm(boxes)
    end
  end

  # @return [Array<String>] levels that differ
  def differences(pid)
    report = Culet::SnapshotLevels.new(Culet::Scope::Reader.new(pid).snapshot)
    finer = report.levels.except(*Culet::Levels::COUNTED)
    overhead = finer.delete("ruby_page_overhead")
    expected = report.levels.merge("other" => finer.values.sum) { |_, own, more| own + more }
                     .merge("ruby_free_slots" => report.levels["ruby_free_slots"] + overhead)
    pairs = { "box" => box.readings.last.levels, "top" => levels_in_top(pid) }.flat_map do |name, levels|
      assert_equal Culet::Levels::COUNTED, levels.keys
      levels.map { |level, bytes| ["#{level} in the #{name}", expected.fetch(level), bytes] }
    end
    far = pairs.reject { |_, exact, found| (exact - found).abs <= 0.04 * report.rss_bytes }
    far.map { |level, exact, found| "#{level}: #{found}, in the report #{exact}" }
  end

  # On a busy machine the agent's first answer, for which it counts the blocks, comes after the first moment.
  def levels_in_top(pid)
    sampler = Culet::Live::Sampler.new([pid])
    assert_settles("the agent answers") { sampler.call["processes"].first["figures"] }["levels"]
  end

  def test_a_process_that_ends_leaves_nothing
    { "1" => 0, "exit 3" => 3, "exit! 4" => 4, "Process.exit!(5)" => 5, "raise 'x'" => 1, "abort" => 1,
      "exec 'true'" => 0, "Process.exec('true')" => 0, "Kernel.exec('true')" => 0,
      "Process.wait(fork { exit! }); Process.wait(fork { exec 'true' }); Process.wait(fork { 1 })" => 0 }.each do |code, number|
      _, _, status = run_boxed(code)
      assert_equal number, status.exitstatus, code
      assert_empty boxes, code
    end
  end

  def test_an_exec_that_fails_goes_on_with_a_black_box
    out, err, = run_boxed("begin; exec('/none'); rescue SystemCallError; puts Culet::BlackBox.running?; end")
    assert_equal ["true\n", ""], [out, err]
    assert_empty boxes
  end

  def test_a_program_without_memory_leaves_a_box_that_says_so
    _, _, status = run_boxed("raise NoMemoryError, 'failed to allocate memory'")
    assert_equal 1, status.exitstatus
    report = autopsy(@folder)
    assert_equal ["error", true], report["cause"].values_at("kind", "certain")
    assert_includes report["cause"]["text"], "NoMemoryError: failed to allocate memory"
  end

  def test_a_forked_process_has_a_file_of_its_own
    out, = run_boxed(<<~RUBY)
      reader, writer = IO.pipe
      child = fork { writer.puts Culet::BlackBox.path; writer.close; sleep }
      writer.close
      path = reader.gets.chomp
      puts path != Culet::BlackBox.path, File.exist?(path), File.exist?(Culet::BlackBox.path)
      Process.kill(:KILL, child)
      Process.wait(child)
      puts child, path
    RUBY
    different, child_has, parent_has, pid, path = out.lines(chomp: true)
    assert_equal %w[true true true], [different, child_has, parent_has]
    assert_equal [path], boxes
    assert_equal Integer(pid), box.pid
  end

  # Where no lock can be taken.
  def test_a_signal_handler_may_fork
    out, err, = run_boxed(<<~RUBY)
      trap(:USR1) { puts Process.wait2(fork { exit!(Culet::BlackBox.running? ? 3 : 4) }).last.exitstatus; exit }
      Process.kill(:USR1, $$)
      sleep
    RUBY
    assert_equal ["3\n", ""], [out, err]
  end

  def test_the_parent_writes_a_summary
    _, err, = run_boxed(<<~RUBY)
      child = fork { Process.kill(:KILL, $$); sleep }
      # Its thread ends when no child is left to look at.
      sleep 0.05 while Thread.list.any? { |thread| thread.name == "culet-blackbox" }
      Process.wait(child)
    RUBY
    assert_equal 3, err.lines.grep(/\Aculet: /).size, err
    assert_match(/\Aculet: process \d+ \(-e\) was ended by SIGKILL/, err)
    assert_equal 9, findings.cause.signal
  end

  # As long as one of its threads has not ended, a process has its files, and is a zombie already: here another process has
  # the lock too.
  def test_the_parent_writes_a_summary_of_a_process_whose_file_is_locked_at_first
    _, err, = run_boxed(<<~'RUBY')
      watched = -> { Thread.list.any? { |thread| thread.name == "culet-blackbox" } }
      looks = 0
      Culet::BlackBox.singleton_class.prepend(Module.new { define_method(:look_at) { |pid| super(pid).tap { looks += 1 } } })
      reader, writer = IO.pipe
      child = fork do
        writer.close
        spawn("cat", in: reader, out: File::NULL, 9 => Culet::BlackBox.instance_variable_get(:@file))
        Process.kill(:KILL, $$)
        sleep
      end
      sleep 0.05 until File.read("/proc/#{child}/stat").match?(/\) Z /)
      looked = looks
      sleep 0.05 until looks >= looked + 2 || !watched.call
      writer.close
      sleep 0.05 while watched.call
      Process.wait(child)
    RUBY
    assert_equal 3, err.lines.grep(/\Aculet: /).size, err
  end

  def test_the_next_process_writes_a_summary_once
    run_boxed("Process.kill(:KILL, $$); sleep")
    _, first, = run_boxed("1")
    _, second, = run_boxed("1")
    assert_equal 3, first.lines.grep(/\Aculet: /).size, first
    assert_empty second
  end

  def test_files_of_ended_processes_are_limited
    keep = Culet::BlackBox::Folder::KEEP
    run_boxed("#{keep + 4}.times { Process.wait(fork { Process.kill(:KILL, $$); sleep }) }")
    run_boxed("1")
    assert_equal keep, boxes.size
  end
end
