# frozen_string_literal: true

require "trim/trim_helper"

# Forks, ends and odd circumstances, most of them in the middle of a trim.
class TrimProcessTest < Minitest::Test
  include TrimHelper

  # A thread that keeps trims going.
  BUSY = "busy = Thread.new { loop { Array.new(1_000) { 'x' * 1_000 }; GC.start; sleep 0.001 } };"

  def forks = all_tests? ? 200 : 18

  %w[glibc jemalloc tcmalloc mimalloc culet].each do |name|
    define_method(:"test_forks_in_the_middle_of_trims_under_#{name}") do
      told, = run_trimmed(<<~RUBY, setting: "interval=0,minimum=0", env: under(name))
        #{BUSY}
        trimming = Thread.new { loop { Culet.trim; sleep 0.001 } }
        outcomes = Array.new(#{forks}) do |index|
          pid = fork do
            Array.new(1_000) { "y" * 700 }
            GC.start
            Culet.trim
            exit!(7) if index % 3 == 1
            exec("true") if index % 3 == 2
            exit(Culet.trim_stats[:trims].positive? && Culet.trim_stats[:requested].positive? ? 0 : 9)
          end
          Process.wait2(pid).last.exitstatus
        end
        trimming.kill.join
        tell(outcomes.each_with_index.map { |status, index| [index % 3, status] }.uniq.sort)
      RUBY
      assert_equal [[0, 0], [1, 7], [2, 0]], told
    end
  end

  # Its statistics begin at zero, its memory goes back by a thread of its own.
  def test_a_forked_child_trims_by_itself
    mother, child, grandchild = run_trimmed(<<~RUBY)
      litter(30)
      GC.start
      wait_until { Culet.trim_stats[:returned_bytes] > 20_000_000 }
      tell(Culet.trim_stats)
      $stdout.flush
      work = lambda do
        fresh = Culet.trim_stats
        litter(40)
        GC.start
        wait_until { Culet.trim_stats[:returned_bytes] > 25_000_000 }
        tell([fresh, Culet.trim_stats])
        $stdout.flush
      end
      Process.wait(fork { work.call; Process.wait(fork(&work)) })
    RUBY
    assert mother[:thread]
    [child, grandchild].each do |fresh, stats|
      assert_equal [0, 0, 0, false, true], fresh.values_at(:trims, :requested, :returned_bytes, :thread, :active)
      assert_equal [true, nil], stats.values_at(:thread, :problem)
      assert_operator stats[:returned_bytes], :>, 25_000_000
    end
  end

  def test_a_daemon_trims
    directory = new_folder
    path = File.join(directory, "told")
    run_trimmed(<<~RUBY)
      GC.start
      litter(40)
      Process.daemon(true, true)
      GC.start
      wait_until { Culet.trim_stats[:returned_bytes] > 25_000_000 }
      File.write(#{"#{path}.part".inspect}, JSON.generate(Culet.trim_stats))
      File.rename(#{"#{path}.part".inspect}, #{path.inspect})
    RUBY
    assert_settles("#{path} comes") { File.exist?(path) }
    assert_operator JSON.parse(File.read(path))["returned_bytes"], :>, 25_000_000
  end

  # By what a program ends, and its exit status and signal.
  ENDINGS = { "exit(3)" => [3, nil], "exit!(3)" => [3, nil], "exec('sh', '-c', 'exit 3')" => [3, nil], "Thread.main.kill" => [0, nil],
              "Process.kill(:TERM, Process.pid); sleep" => [nil, 15], "raise Interrupt" => [nil, 2], "abort" => [1, nil] }.freeze

  def test_ends_in_the_middle_of_trims
    ENDINGS.each do |ending, expected|
      script = <<~RUBY
        #{BUSY}
        Thread.new { loop { Culet.trim } }
        $stderr = File.open(File::NULL, "w")
        sleep 0.2
        #{ending}
      RUBY
      out, err, status = run_program(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-rculet/auto", "-e", script,
                                     env: TestHelper::NEUTRAL.merge("CULET_TRIM" => "interval=0,minimum=0"))
      assert_equal ["", *expected], [out + err, status.exitstatus, status.termsig], ending
    end
  end

  def test_a_hundred_threads
    told, = run_trimmed(<<~RUBY, setting: "interval=0,minimum=0")
      threads = Array.new(100) { Thread.new { 5.times { Array.new(300) { "x" * rand(2_000) }; Culet.trim if rand(10).zero? } } }
      20.times { GC.start; sleep 0.01 }
      threads.each(&:join)
      tell(Culet.trim_stats)
    RUBY
    assert_operator told[:trims], :>, 10
    assert_operator told[:requested], :>=, 20
  end

  # No hook of this Ractor's sees the collections of another.
  def test_collections_in_another_ractor_are_seen
    told, = run_trimmed(<<~RUBY, "-W:no-experimental", warnings: false)
      ractor = Ractor.new do
        6.times { GC.start; sleep 0.01 }
        Ractor.receive
      end
      tell([wait_until { Culet.trim_stats[:requested] >= 6 && Culet.trim_stats[:trims].positive? }, Culet.trim_stats])
      ractor.send(1)
    RUBY
    assert told.first, told.inspect
  end

  def test_stress_compaction_and_disabled_collections
    told, = run_trimmed(<<~RUBY, setting: "interval=0,minimum=0")
      GC.stress = true
      200.times { Object.new }
      GC.stress = false
      if GC.respond_to?(:compact)
        5.times { GC.compact }
        GC.auto_compact = true
        3.times { Array.new(5_000) { "x" * 90 }; GC.start }
        GC.auto_compact = false
      end
      stressed = wait_until { Culet.trim_stats[:trims] > 3 }
      GC.disable
      litter = Array.new(40_000) { "x" * 1_000 }
      litter = nil
      GC.enable
      GC.start
      tell([stressed, wait_until { Culet.trim_stats[:returned_bytes] > 20_000_000 }, Culet.trim_stats])
    RUBY
    assert told[0], told.inspect
    assert told[1], told.inspect
  end

  # ObjectSpace calls mark functions as a collection does.
  def test_questions_about_objects_are_no_collections
    told, = run_trimmed(<<~RUBY, "-robjspace")
      GC.start
      GC.disable
      before = Culet.trim_stats[:requested]
      3.times { ObjectSpace.dump_all(output: File.open(File::NULL, "w")) ; ObjectSpace.reachable_objects_from_root }
      tell([before, Culet.trim_stats[:requested]])
    RUBY
    assert_equal(*told)
  end

  def test_signals_are_the_programs
    told, = run_trimmed(<<~RUBY)
      GC.start
      wait_until { Culet.trim_stats[:thread] }
      name, task = nil
      wait_until { task = Dir["/proc/self/task/*"].find { |path| (name = File.read(path + "/comm").chomp) == "culet-trim" } }
      blocked = File.read(task + "/status")[/^SigBlk:\\s*(\\h+)/, 1].to_i(16)
      got = []
      %w[USR1 USR2 TERM HUP WINCH].each { |signal| trap(signal) { got << signal } }
      %w[USR1 USR2 TERM HUP WINCH].each { |signal| Process.kill(signal, Process.pid) }
      wait_until { got.size == 5 }
      tell(name: name, unblocked: %w[HUP INT QUIT USR1 USR2 TERM CHLD PROF ALRM].select { |signal| (blocked >> (Signal.list[signal] - 1)).even? },
           got: got.sort, ruby_threads: Thread.list.size)
    RUBY
    assert_equal "culet-trim", told[:name]
    assert_empty told[:unblocked]
    assert_equal %w[HUP TERM USR1 USR2 WINCH], told[:got]
    assert_equal 1, told[:ruby_threads]
  end

  # A refused thread is said once; then Ruby's threads do it.
  def test_no_thread_to_be_had
    skip "needs root, to become a user who may have few processes" unless Process.euid.zero?

    script = <<~RUBY
      #{PRELUDE}
      Process::Sys.setuid(64_123)
      Process.setrlimit(:NPROC, 1)
      litter(60)
      peak = resident
      3.times { GC.start; 1 + 1 }
      tell(fell: wait_until { peak - resident > 40_000_000 }, stats: Culet.trim_stats)
    RUBY
    directory = new_folder
    copy_for_everybody(directory)
    out, err = assert_success(RbConfig.ruby, "--disable-gems", "-w", "-I#{directory}/lib", "-rculet/auto", "-e", script, env: TestHelper::NEUTRAL)
    assert_equal 1, err.lines.size, err
    assert_match(/\Aculet: cannot create a thread for trims \(Resource temporarily unavailable\); Ruby threads return memory/, err)
    told = JSON.parse(out, symbolize_names: true)
    assert told[:fell], told.inspect
    assert_equal ["now", false], told[:stats].values_at(:mode, :thread)
    assert_match(/cannot create a thread/, told[:stats][:problem])
  end

  # As servers are started: through bundler, which starts Ruby anew, with the library on RUBYOPT.
  def test_rubyopt_with_bundler
    directory = new_folder
    File.write(File.join(directory, "Gemfile"), "")
    script = "litter = Array.new(40_000) { 'x' * 1_000 }; litter = nil; GC.start; " \
             "2_000.times { sleep 0.05; break if Culet.trim_stats[:trims] > 0 }; " \
             "p Culet.trim_stats.values_at(:active, :thread), defined?(Bundler)"
    env = TestHelper::NEUTRAL.merge("RUBYOPT" => "-I#{TestHelper::ROOT}/lib -rculet/auto", "BUNDLE_GEMFILE" => File.join(directory, "Gemfile"))
    out, err = assert_success(RbConfig.ruby, "-S", "bundle", "exec", RbConfig.ruby, "-e", script, env: env, chdir: directory)
    assert_equal "[true, true]\n\"constant\"\n", out
    assert_empty err
  end

  # Each copy of the extension would have a thread of its own, and trim once more.
  ANOTHER = <<~RUBY
    GC.start
    counts = [wait_until { Culet.trim_stats[:trims].positive? }, own_threads]
    stats = other.trim_stats
    bytes = other.trim
    tell([counts, stats, bytes, own_threads])
  RUBY

  # The files of another copy of the gem, as a bundle may have one, use the extension that is there.
  def test_two_copies_of_the_gem_share_one_extension
    directory = new_folder
    FileUtils.cp_r("#{TestHelper::ROOT}/lib", directory)
    told, = run_trimmed("require '#{directory}/lib/culet/auto'; tell($LOADED_FEATURES.grep(/culet\\.so\\z/).size)", "-W0", warnings: false)
    assert_equal 1, told
  end

  def test_of_two_extensions_in_a_process_one_is_at_work
    directory = new_folder
    FileUtils.cp_r("#{TestHelper::ROOT}/lib", directory)
    told = run_trimmed("first = Culet.method(:trim_stats); require '#{directory}/lib/culet/culet.so'; " \
                       "require '#{directory}/lib/culet/auto'; other = Culet.clone; " \
                       "Culet.define_singleton_method(:trim_stats, &first); #{ANOTHER}", "-W0", warnings: false)
    counts, stats, _, threads = told.first
    # The second copy's entry gives way to that of the first.
    assert_equal [[true, 1], "off", 0, 1], [counts, *stats.values_at(:mode, :trims), threads]
  end

  def test_of_two_boxes_one_is_at_work
    skip "this Ruby has no boxes" unless defined?(Ruby::Box)

    script = "box = Ruby::Box.new; box.eval('$LOAD_PATH.unshift(\"#{TestHelper::ROOT}/lib\")'); box.require('culet/auto'); other = box::Culet; #{ANOTHER}"
    assert_one_at_work(run_trimmed(script, "-W:no-experimental", env: { "RUBY_BOX" => "1" }, warnings: false))
  end

  def test_a_script_without_a_major_collection_has_no_thread
    told, = run_trimmed("tell([own_threads, Culet.trim_stats[:thread]])", "--disable-gems") # of newer Rubies' gems one may come
    assert_equal [0, false], told
  end

  private

  def assert_one_at_work(told)
    counts, stats, bytes, threads = told.first
    assert_equal [true, 1], counts
    assert_equal ["elsewhere", true, false, 0], stats.values_at(:mode, :active, :thread, :trims)
    assert_match(/\Aanother copy of culet/, stats[:problem])
    assert_kind_of Integer, bytes
    assert_equal 1, threads
  end

  def copy_for_everybody(directory)
    FileUtils.cp_r("#{TestHelper::ROOT}/lib", directory)
    File.chmod(0o755, directory)
    system("chmod", "-R", "a+rX", directory, exception: true)
  end
end
