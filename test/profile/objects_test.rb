# frozen_string_literal: true

require "test_helper"

# The samples of Ruby's objects: what they stand for, their classes, and when they are gone.
class ProfileObjectsTest < Minitest::Test
  # Defines `profile`, which returns the objects of the profile: class => the sums of a view.
  PRELUDE = <<~'RUBY'
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    def during(seconds)
      past = now + seconds
      yield while now < past
    end

    def profile(view)
      path = File.join(ENV.fetch("FOLDER"), Process.pid.to_s)
      Culet::Profile.write(path)
      lines = File.readlines(path, chomp: true)
      scale = lines.grep(/\AO /).first&.split&.slice(1, 2)&.map(&:to_f)&.reduce(:/) || 1.0
      names = lines.grep(/\AT /).to_h { |line| line.split(" ", 3).drop(1) }
      sums = Hash.new { |hash, key| hash[key] = [0, 0.0, 0.0, 0.0] }
      lines.grep(/\AS o /).each do |line|
        fields = line.split
        at = fields.index(view) or next
        sums[names.fetch(fields[4])] = sums[names[fields[4]]].zip(fields[at + 1, 4]).zip([1, scale, scale, scale * scale]).map { |(sum, field), factor| sum + (Float(field) * factor) }
      end
      sums
    end

    def samples(view, name) = profile(view)[name][0].to_i
  RUBY

  ENOUGH = 60 # samples, whose shares differ from the truth by a few hundredths

  def test_sites_get_their_shares
    made, sums = measure_shares
    total = made.values.sum
    all = sums.values.sum { |_, blocks| blocks }
    made.each do |name, count|
      assert_in_delta count.to_f / total, sums[name][1] / made.each_key.sum { |one| sums[one][1] },
                      0.05 + (5 * error_of_share(sums.slice(*made.keys), [name])), [made, sums].inspect
    end
    # Ruby makes few other objects here. The estimates of all add up to their number, less the share of internal ones, which
    # is an estimate too.
    assert_in_delta total / all, made.each_key.sum { |one| sums[one][1] } / all, 0.15 + (5 * error_of_share(sums, made.keys)), [made, sums].inspect
  end

  # Ruby's own slots, which no WeakMap holds: of each kept lambda one has its environment.
  def test_internal_slots_are_counted_and_leave
    before, after = ruby(<<~RUBY).split("\n").map { |line| line.split.map(&:to_f) }
      kept = []
      def closure(number) = -> { number }
      def figures = profile("l").values_at("Proc", "T_IMEMO (env)").flat_map { |samples, blocks| [samples, blocks] }
      Culet::Profile.start(sample_bytes: 512)
      during(60) { 1_000.times { kept << closure(1) }; break if kept.size % 20_000 == 0 && figures.values_at(0, 2).min > 30 }
      Culet::Profile.stop
      puts [*figures, kept.size].join(" ")
      kept.clear
      100.times { |depth| Array.new(depth) { Object.new } }
      10.times { GC.start }
      puts figures.join(" ")
    RUBY
    [1, 3].each { |at| assert_in_delta before[4], before[at], before[4] * (0.1 + (4 / Math.sqrt(before[at - 1]))), before.inspect }
    [0, 2].each { |at| assert_operator after[at], :<=, 0.1 * before[at], after.inspect }
  end

  # Up to Ruby 3.2 they are in the transient heap, which is not malloc's, until a collection copies them to malloc or
  # that heap is full. A window may close between Row.new and its buffer, which Row[] makes at once.
  def test_buffers_of_small_arrays_count_with_the_array
    skip "this Ruby has no transient heap" unless RUBY_VERSION < "3.3"
    size, samples, truth, rows = ruby(<<~RUBY).split.map(&:to_f)
      class Row < Array; end
      NUMBERS = [*1..8]
      kept = []
      GC.disable
      Culet::Profile.start(sample_bytes: 512)
      during(60) do
        100.times { kept << Row[*NUMBERS] }
        sleep 0.002
        break if kept.size % 2_000 == 0 && samples("l", "Row") > 5
      end
      Culet::Profile.stop
      count, blocks, bytes = profile("l")["Row"]
      require "objspace"
      puts bytes / blocks, count, ObjectSpace.memsize_of(Row[*NUMBERS]), kept.size
    RUBY
    assert_operator samples, :>, 5
    assert_operator rows, :<, 400_000
    assert_in_delta truth, size, 0.5
  end

  # Thread#kill may come while a sample is taken; Ruby discards what takes effect in a postponed job.
  def test_threads_that_are_killed_end
    assert_equal "true\n", ruby(<<~RUBY)
      ObjectSpace::WeakMap.prepend(Module.new { define_method(:[]=) { |*pair| sleep(0.01) && super(*pair) } })
      Culet::Profile.start(sample_bytes: 64)
      killed = Array.new(30) do
        thread = Thread.new { loop { +"x" } }
        sleep 0.05
        thread.kill.join(20)
      end
      p killed.all?
      exit!(0)
    RUBY
  end

  def test_a_deadlock_is_still_found
    assert_match(/\Afatal: No live threads left/, ruby(<<~RUBY))
      Culet::Profile.start(sample_bytes: 64)
      during(60) { 1000.times { +"x" }; break if Thread.list.size > 1 }
      begin
        Queue.new.pop
      rescue Exception => e
        puts "\#{e.class}: \#{e.message}"
      end
    RUBY
  end

  # A program may end all threads that it knows; another one follows the objects then.
  def test_its_thread_is_replaced
    assert_equal "[true, true]\n", ruby(<<~RUBY)
      class Kept; end
      kept = []
      Culet::Profile.start(sample_bytes: 256)
      others = -> { Thread.list - [Thread.current] }
      during(60) { 1000.times { +"x" }; break unless others.call.empty? }
      others.call.each { |thread| thread.kill.join }
      during(60) { 100.times { kept << Kept.new }; break if kept.size % 5_000 == 0 && samples("l", "Kept") > 2 }
      Culet::Profile.stop
      before = samples("l", "Kept")
      kept.clear
      100.times { |depth| Array.new(depth) { Object.new } }
      10.times { GC.start }
      p [before > 2, samples("l", "Kept") <= 1]
    RUBY
  end

  # It must not reach for a virtual machine that is being torn down. Handlers that were registered first run last.
  def test_its_thread_ends_before_ruby
    script = <<~'RUBY'
      def threads = Dir["/proc/self/task/*/comm"].count { |path| File.read(path) == "culet-profile\n" }

      at_exit do
        200.times { sleep 0.01 if threads == 1 } # the kernel lists a thread that has been joined a little longer
        p threads
      end
      require "culet/profile"
      Culet::Profile.start
      sleep 0.01 until threads == 1
    RUBY
    out, err, status = run_program(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-e", script, env: TestHelper::NEUTRAL)
    assert_equal [true, "", "0\n"], [status.success?, err, out]
  end

  # A thread inherits what its creator defers; here, its own end.
  def test_a_program_that_defers_interrupts_ends
    assert_equal "2\n", ruby(<<~RUBY)
      Culet::Profile.start(sample_bytes: 64)
      Thread.handle_interrupt(Object => :never) do
        during(60) { 1000.times { +"x" }; break if Thread.list.size > 1 }
      end
      p Thread.list.size
    RUBY
  end

  def test_objects_are_live_until_they_are_collected
    assert_equal "[true, true, true, true]\n", ruby(<<~RUBY)
      class Kept; end
      class Dropped; end
      kept = []
      Culet::Profile.start(sample_bytes: 1024)
      during(60) do
        100.times { kept << Kept.new; Dropped.new }
        break if kept.size % 10_000 == 0 && samples("l", "Kept") > 5 && samples("a", "Dropped") > 5
      end
      Culet::Profile.stop
      before = samples("l", "Kept")
      10.times { GC.start }
      GC.compact if GC.respond_to?(:compact)
      still = samples("l", "Kept")
      size = kept.size
      dropped = samples("l", "Dropped")
      kept.clear
      kept = nil
      100.times { |depth| Array.new(depth) { Object.new } }
      10.times { GC.start }
      p [size > 0, before == still, dropped <= 1, samples("l", "Kept") <= 1]
    RUBY
  end

  def test_names_of_classes
    out = ruby(<<~RUBY)
      class Named; def self.name = raise("called"); end
      class Blank < BasicObject; def ==(_) = ::Kernel.raise("called"); end
      class Bad; def ==(_) = raise("called"); alias eql? ==; def hash = raise("called"); end
      module Inner; class Deep; end; end
      anonymous = Class.new(Named)
      Culet::Profile.start(sample_bytes: 512)
      wanted = %w[Named Blank Bad Inner::Deep Class.new(Named) String]
      during(60) do
        100.times { Named.new; Blank.new; Bad.new.freeze; Inner::Deep.new; anonymous.new; Object.new.singleton_class; +"x" }
        break if rand(2000) == 0 && (wanted - profile("a").keys).empty?
      end
      puts profile("a").keys.grep_v(/Time|Float|Hash|Array|Random|File|Enumer/).sort
    RUBY
    assert_empty(%w[Bad Blank Class.new(Named) Inner::Deep Named String] - out.lines(chomp: true))
  end

  def test_forked_processes_go_on
    assert_equal "[true, true, true]\n", ruby(<<~RUBY)
      class Before; end
      class After; end
      Culet::Profile.start(sample_bytes: 512)
      kept = []
      during(60) { 100.times { kept << Before.new }; break if kept.size % 5_000 == 0 && samples("l", "Before") > 2 }
      reader, writer = IO.pipe
      pid = fork do
        during(60) { 100.times { kept << After.new }; break if kept.size % 5_000 == 0 && samples("l", "After") > 2 }
        writer.puts(samples("l", "After"), samples("i", "Before"))
        writer.close
        exit!(0)
      end
      writer.close
      after, inherited = reader.read.split.map(&:to_i)
      Process.wait(pid)
      p [after > 2, inherited > 2, samples("l", "After") == 0]
    RUBY
  end

  def test_it_survives_compaction_stress_threads_ractors_and_restarts
    assert_equal "done\n", ruby(<<~RUBY, "-W0")
      Culet::Profile.start(sample_bytes: 256)
      threads = Array.new(3) { Thread.new { during(2) { Hash.new.merge(a: Object.new.to_s * 3); Thread.pass } } }
      ractor = Ractor.new { 200_000.times { Object.new.to_s } }
      fiber = Fiber.new { loop { Fiber.yield Array.new(10) { +"x" } } }
      during(1) { GC.compact if GC.respond_to?(:compact); 2000.times { fiber.resume }; Culet::Profile.stop; Culet::Profile.start(sample_bytes: 256) }
      GC.stress = true
      during(0.5) { Marshal.load(Marshal.dump([Object, "x", { a: 1.5 }])) }
      GC.stress = false
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      threads.each(&:join)
      profile("a")
      puts "done"
    RUBY
  end

  def test_an_idle_process_wakes_up_rarely
    assert_equal "true\n", ruby(<<~RUBY)
      Culet::Profile.start
      sleep 2
      wakeups = -> { Dir["/proc/self/task/*/status"].select { |file| File.read(file).start_with?("Name:\\tculet-profile") }.sum { |file| File.read(file)[/^voluntary.*?(\\d+)/, 1].to_i } }
      before = wakeups.call
      sleep 3
      p wakeups.call - before <= 25 # windows would take some hundreds
    RUBY
  end

  private

  # The numbers of objects of three classes, and the sums of all classes. Longer on a busy machine, where samples are few.
  def measure_shares(seconds = 2)
    made, sums = eval(ruby(<<~RUBY)) # rubocop:disable Security/Eval -- our own program's literal
      A, B, C = Array.new(3) { Class.new }
      Culet::Profile.start(sample_bytes: 4096)
      made = [0, 0, 0]
      during(#{seconds}) do
        20.times { A.new }
        60.times { B.new }
        120.times { C.new }
        made = made.zip([20, 60, 120]).map(&:sum)
      end
      Culet::Profile.stop
      p([%w[A B C].zip(made).to_h, profile("a")])
    RUBY
    return made, Hash.new([0, 0.0, 0.0, 0.0].freeze).merge(sums) if sums.values.sum(&:first) >= ENOUGH

    flunk("#{sums} in #{seconds} s") if seconds > 60

    measure_shares(seconds * 2)
  end

  # The standard error of some classes' share of the blocks of all.
  def error_of_share(sums, names)
    total = sums.values.sum { |_, blocks| blocks }
    share = names.sum { |name| sums[name][1] } / total
    squares = sums.sum do |name, (_, blocks, bytes, variance)|
      variance / (bytes / blocks)**2 * (names.include?(name) ? 1 - share : share)**2
    end
    Math.sqrt(squares) / total
  end

  def ruby(program, *flags)
    Dir.mktmpdir do |folder|
      out, = assert_success(RbConfig.ruby, *flags, "-I#{ROOT}/lib", "-rculet/profile", "-e", PRELUDE + program,
                            env: TestHelper::NEUTRAL.merge("FOLDER" => folder))
      out
    end
  end
end
