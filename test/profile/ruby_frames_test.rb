# frozen_string_literal: true

require "profile/profile_helper"

# The Ruby frames of a sample. A string of a size of its own marks each case.
class ProfileRubyFramesTest < Minitest::Test
  include ProfileHelper

  # Ruby before 3.4 reports the method of a block, and Array#each of 3.4 is Ruby.
  def test_methods_blocks_and_c_methods
    stream = profile(<<~RUBY)
      class Outer
        def work
          [1].map do
            $kept = "x" * 50_001
          end
        end
        def self.call = new.work
      end
      Outer.call
    RUBY
    frames = stream.ruby(50_002)
    assert_equal "<cfunc>:0:String#*", frames[0]
    assert_match(/\Aprogram.rb:4:(?:block in )?Outer#work\z/, frames[1])
    assert_match(/:Array#map\z/, frames[2])
    assert_equal ["program.rb:3:Outer#work", "program.rb:7:Outer.call", "program.rb:9:<main>"], frames[3..]
    assert_equal [2, 7], stream.stack(50_002).grep(Stream::Frame).last(3).first(2).map(&:first_line)
    native = stream.stack(50_002).take_while { |word| word.is_a?(Integer) }
    assert_includes 1..12, native.size # up to the interpreter, or there would be two dozen
  end

  def test_labels_of_all_kinds_of_code
    stream = profile(<<~RUBY)
      class Defined
        define_method(:dynamic) { $a = "x" * 50_101 }
        $b = "x" * 50_103
      end
      Defined.new.dynamic
      Class.new(Defined) { def anonymous = ($c = "x" * 50_105) }.new.anonymous
      module Refining
        refine(String) { def refined = ($d = "x" * 50_107) }
      end
      using Refining
      "".refined
      ->(size) { $e = "x" * size }.call(50_109)
      def Defined.method_missing(name) = ($f = "x" * 50_111)
      Defined.unknown
    RUBY
    expected = { 50_102 => "2:block in <class:Defined>", 50_104 => "3:<class:Defined>", 50_106 => "6:#<Class>#anonymous",
                 50_110 => "12:block in <main>", 50_112 => "13:Defined.method_missing" }
    assert_equal(expected.transform_values { |name| "program.rb:#{name}" }, expected.to_h { |size, _| [size, stream.ruby(size)[1]] })
    # Of a refinement, Ruby 4.0 reports the class alone.
    assert_match(/\Aprogram.rb:8:#<(?:[Rr]efinement.*|#<Class>)>#refined\z/, stream.ruby(50_108)[1])
  end

  def test_evaluated_code_has_its_own_file_and_line
    stream = profile(<<~RUBY)
      class Template
        def render = instance_eval("[1].map { $a = 'x' * 50_201 }", "page.erb", 33)
        def result = eval("$b = 'x' * 50_203", binding, "mail.erb", 44)
      end
      Template.new.render
      Template.new.result
      eval("\\n$c = 'x' * 50_205", TOPLEVEL_BINDING, "top.erb", 1)
      Template.class_eval("def compiled = ($d = 'x' * 50_207)", "view.erb", 7)
      Template.new.compiled
    RUBY
    # Of code that eval runs in a method Ruby has the method's file.
    assert_equal ["program.rb:33", "program.rb:44", "top.erb:2", "view.erb:7"],
                 [50_202, 50_204, 50_206, 50_208].map { |size| stream.ruby(size)[1][/\A.*:\d+/] }
    assert_equal "program.rb:3:Template#result", stream.ruby(50_204)[3]
    assert_equal "view.erb:7:Template#compiled", stream.ruby(50_208)[1]
  end

  def test_fibers_threads_and_enumerators
    stream = profile(<<~RUBY)
      Fiber.new { $a = "x" * 50_301 }.resume
      Thread.new { $b = "x" * 50_303 }.join
      def outer = Enumerator.new { |yielder| yielder << ($c = "x" * 50_305) }
      outer.next
      threads = Array.new(4) { |index| Thread.new { 50.times { "x" * (50_311 + index) } } }
      threads.each(&:join)
    RUBY
    assert_equal "program.rb:1:block in <main>", stream.ruby(50_302)[1]
    assert_equal "program.rb:2:block in <main>", stream.ruby(50_304)[1]
    assert_match(/\Aprogram.rb:3:(block in )?Object#outer\z/, stream.ruby(50_306)[1])
    # With a JIT the native frames of compiled code make more sites of it.
    together = stream.sites.select { |_, words| words.grep_v(Integer)[1].to_s.start_with?("program.rb:5:block") }
    assert_equal [200, 50 * ((50_312 * 4) + 6)], together.map { |sums,| sums["a"] }.transpose.map(&:sum)
  end

  def test_deep_recursion_is_cut_at_the_outer_end
    stream = profile("def deep(n) = n.zero? ? ($a = 'x' * 50_401) : deep(n - 1)\ndeep(1000)")
    words = stream.stack(50_402)
    assert_equal :truncated, words.last
    assert_equal "program.rb:1:Object#deep", words[-2].to_s
    assert_operator words.size, :<=, 256
  end

  # Every third malloc is sampled, in collections too.
  def test_gc_stress_and_compaction
    stream = profile(<<~RUBY, every: 3)
      def churn = Array.new(20) { |index| "name\#{index}".to_sym.to_s * 3 }
      GC.stress = true
      3.times { churn }
      GC.stress = false
      20.times { churn; GC.respond_to?(:compact) && GC.compact }
      def late = ($a = "x" * 50_501)
      late
    RUBY
    assert_equal "program.rb:6:Object#late", stream.ruby(50_502)[1]
    marks = stream.sites.flat_map(&:last).grep(Symbol).uniq
    assert_includes marks, :gc
    assert_empty marks - %i[gc no_gvl truncated deferred]
    assert_includes stream.labels, "Object#churn"
  end

  # A sampled frame is marked until the second major collection after its last use.
  def test_code_that_the_program_drops_is_freed
    out = inside(<<~RUBY)
      require "objspace"
      Culet::Profile.start(sample_bytes: 1)
      def load_code = 100.times { |index| eval("class Dropped\#{index}; def self.work = 'x' * 60_001; end; Dropped\#{index}.work", TOPLEVEL_BINDING) }
      def drop = 100.times { |index| Object.send(:remove_const, "Dropped\#{index}") }
      def count = ObjectSpace.each_object(Class).count { |one| one.name.to_s.start_with?("Dropped") }
      load_code
      puts count
      drop
      def clear(depth = 100) = depth.zero? ? nil : clear(depth - 1)
      5.times { clear; GC.start }
      puts count < 5
      text = Culet::Profile.send(:stream)
      puts text.scan(/Dropped\\d+\\.work/).uniq.size
    RUBY
    assert_equal "100\ntrue\n100\n", out
  end

  # The address of dropped code may belong to other code later.
  def test_code_at_a_reused_address_has_its_own_name
    stream = profile(<<~RUBY)
      60.times do |index|
        eval("def temporary\#{index} = 'x' * \#{60_001 + index}", TOPLEVEL_BINDING, "file\#{index}.rb", 10)
        send("temporary\#{index}")
        Object.send(:remove_method, "temporary\#{index}")
        4.times { GC.start } if index % 10 == 9
      end
    RUBY
    60.times { |index| assert_equal "file#{index}.rb:10:Object#temporary#{index}", stream.ruby(60_002 + index)[1] }
  end

  def test_names_are_escaped
    stream = profile(%q[eval("$a = 'x' * 50_601", TOPLEVEL_BINDING, "a\tb\\\\c\xFFd\u00e9\n.rb", 3)])
    assert_includes stream.fields("F").map { |line| line.split(" ", 3).last.split("\t").first }, "a\\x09b\\x5cc\\xffd\u00e9\\x0a.rb"
  end

  def test_ractors
    # Rubies before 3.2 cannot report objects beside Ractors.
    warning = /\Aculet: the profile samples no more objects: this version of Ruby cannot report them beside Ractors\n\z/
    stream = profile(<<~RUBY, flags: ["-W0"], every: 20, warning: warning)
      def work = ("x" * 50_701).size
      ractors = Array.new(3) { Ractor.new { 200.times { Array.new(20) { |i| "n\#{i}" * 10 } }; work } }
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
    RUBY
    assert_equal(3, of(stream, 50_702).sum { |sums, _| sums["a"][0] })
    assert_equal ["program.rb:1:Object#work"], of(stream, 50_702).map { |_, words| words.grep_v(Integer)[1].to_s }.uniq
  end

  # Fiddle releases the GVL around each call.
  MALLOC = <<~RUBY
    require "fiddle"
    MALLOC = Fiddle::Function.new(Fiddle.dlopen(nil)["malloc"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)
    def native(bytes) = MALLOC.call(bytes)
  RUBY

  def test_without_the_gvl
    skip_without_fiddle
    stream = profile(<<~RUBY)
      #{MALLOC}
      native(50_901)
      Thread.new { native(50_903) }.join
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      native(50_905)
      GC.auto_compact = false if GC.respond_to?(:auto_compact=)
      native(50_907)
    RUBY
    line = "program.rb:3:Object#native"
    assert_equal [line, "program.rb:5:<main>"], stream.ruby(50_901).grep(/program/)
    assert_equal [line, "program.rb:6:block in <main>"], stream.ruby(50_903).grep(/program/)
    assert_equal [%w[no_gvl], [line]], [stream.ruby(50_905), stream.ruby(50_907).grep(/program/).first(1)]
  end

  # Collections and compactions wait for threads that read their frames without the GVL; forks do not.
  def test_without_the_gvl_beside_collections_and_forks
    skip_without_fiddle
    stream = profile(<<~RUBY, every: 50)
      #{MALLOC}
      FREE = Fiddle::Function.new(Fiddle.dlopen(nil)["free"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
      stop = false
      calls = 0
      def code(number) = eval("->(bytes) { FREE.call(MALLOC.call(bytes)) }", TOPLEVEL_BINDING, "code\#{number}.rb", 7)
      threads = Array.new(3) { Thread.new { until stop; 20.times { |at| code(at).call(50_911) }; calls += 1; end } }
      Thread.pass until calls > 3
      60.times do |round|
        Array.new(300) { |at| "kept \#{at}" }
        GC.respond_to?(:compact) && round % 2 == 0 ? GC.compact : GC.start
        next if round % 20 != 0
        pid = fork { 3.times { GC.start }; code(1).call(50_912); exit!(0) }
        Process.wait(pid)
        raise "the child failed" unless $?.success?
      end
      stop = true
      threads.each(&:join)
    RUBY
    # the allocated bytes: of freed blocks
    words = stream.sites.select { |sums, _| (sums["a"] || [0, 0]).then { |count, bytes| count.positive? && bytes == 50_911 * count } }
    found = words.map { |sums, stack| [stack.grep_v(Integer).map(&:to_s).find { |frame| frame !~ /cfunc/ }, sums["a"].first] }
    right, other = found.partition { |frame, _| frame.to_s.match?(/\A(?:code\d+|program).rb:7:/) }
    assert_empty(other.map(&:first) - ["no_gvl"])
    assert_operator right.sum(&:last), :>, 9 * other.sum(&:last)
  end

  def test_signals_and_timeouts
    stream = profile(<<~RUBY, every: 5)
      require "timeout"
      trap(:USR1) { $a = "x" * 50_801 }
      Process.kill(:USR1, Process.pid)
      sleep 0.01 until $a
      20.times { Timeout.timeout(0.005) { loop { "y" * 300 } } rescue Timeout::Error }
    RUBY
    assert_equal "program.rb:2:block in <main>", stream.ruby(50_802)[1]
  end

  private

  def skip_without_fiddle
    require "fiddle"
  rescue LoadError
    skip "this Ruby has no fiddle: it is a gem since Ruby 4.0"
  end

  def of(stream, bytes) = stream.sites.select { |sums, _| sums["a"][1] == bytes * sums["a"][0] }
end
