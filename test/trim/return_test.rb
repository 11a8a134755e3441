# frozen_string_literal: true

require "trim/trim_helper"

# The point of it: what a major collection freed is the kernel's again, under every allocator.
class TrimReturnTest < Minitest::Test
  include TrimHelper

  MEGABYTES = 160

  # Eight threads make garbage and go on with small things; one major collection.
  BURST = <<~RUBY.freeze
    ready, over = Queue.new, Queue.new
    litter(0)
    GC.disable
    threads = Array.new(8) do
      Thread.new do
        #{MEGABYTES / 8}.times { Array.new(1_000) { "x" * 1_000 } }
        ready << true
        (sleep 0.02; Object.new) while over.empty?
      end
    end
    8.times { ready.pop }
    peak = resident
    GC.enable
    GC.start
    fell = wait_until(ARGV.empty? ? 100 : 1.5) { peak - resident > #{MEGABYTES} * 700_000 && (!ARGV.empty? || Culet.trim_stats[:returned_bytes] > #{MEGABYTES} * 700_000) }
    tell(peak: peak, after: resident, fell: fell, stats: Culet.trim_stats)
    over << true
    threads.each(&:join)
  RUBY

  %w[glibc jemalloc tcmalloc mimalloc culet].each do |name|
    define_method(:"test_memory_goes_back_under_#{name}") do
      told, = run_trimmed(BURST, env: under(name))
      assert told[:fell], told.inspect
      stats = told[:stats]
      assert_equal [name, true, nil], stats.values_at(:allocator, :active, :problem)
      assert_operator stats[:returned_bytes], :>, MEGABYTES * 700_000
      assert_operator stats[:trims], :>=, 1
      assert_equal name == "mimalloc" ? "now" : "background", stats[:mode]
    end
  end

  # As of a Ruby that was built with -fstack-clash-protection.
  def test_the_main_thread_s_unused_stack_goes_back
    before, after = run_trimmed(<<~RUBY, auto: false)
      def stack = Integer(File.read("/proc/self/smaps")[/\\[stack\\]\\n.*?^Rss: +(\\d+)/m, 1], 10)
      def deep(levels) = levels.zero? ? nil : { levels => nil }.each_key { deep(levels - 1) }
      deep(2_500)
      tell(stack)
      require "culet/auto"
      tell(stack)
    RUBY
    assert_operator before, :>, 1_000
    assert_operator after, :<, 500
  end

  # What the tests above show is not what would have come about anyway.
  def test_without_it_the_memory_stays
    out, = assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", PRELUDE + BURST, "short", env: NEUTRAL)
    told = JSON.parse(out, symbolize_names: true)
    refute told[:fell]
    assert_operator told[:after], :>, told[:peak] * 0.7
    assert_equal [0, "off"], told[:stats].values_at(:trims, :mode)
  end

  # What the sweep had not freed yet when a trim came goes back later, and what comes after the last trim too.
  def test_the_last_collection_is_not_forgotten
    told, = run_trimmed(<<~RUBY, setting: "interval=0.5")
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      5.times { litter(20); GC.start }
      fell = wait_until { resident < 60_000_000 && Culet.trim_stats[:trims] > 1 }
      tell(fell: fell, stats: Culet.trim_stats, seconds: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began)
    RUBY
    assert told[:fell], told.inspect
    assert_operator told[:stats][:trims], :<, 4 + (told[:seconds] / 0.5)
  end

  def test_at_once_needs_no_thread
    told, = run_trimmed("litter(60); peak = resident; GC.start; fell = wait_until { peak - resident > 40_000_000 }; " \
                        "tell(fell: fell, threads: own_threads, stats: Culet.trim_stats)", setting: "now")
    assert told[:fell], told.inspect
    assert_equal [0, "now", false], [told[:threads], *told[:stats].values_at(:mode, :thread)]
  end

  # The compaction moves each object that nothing pins, Culet::Error among them.
  def test_an_allocator_without_a_call_is_said_once_and_the_program_runs
    directory = new_folder
    library = compile_c(File.join(directory, "other.so"), <<~C, "-shared", "-fPIC")
      #include <stddef.h>
      extern void *__libc_malloc(size_t);
      void *malloc(size_t size) { return __libc_malloc(size); }
    C
    out, err = assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet/auto", "-e",
                              "GC.start; GC.verify_compaction_references(toward: :empty, double_heap: true) if GC.respond_to?(:compact); " \
                              "p Culet.trim_stats[:active]; begin; Culet.trim; rescue Culet::Error => e; puts e.message; end",
                              env: NEUTRAL.merge("LD_PRELOAD" => library))
    assert_equal 1, err.lines.size
    assert_match(/\Aculet: free memory is not returned after garbage collections: culet knows no call/, err)
    assert_match(/\Afalse\nculet knows no call by which this allocator/, out)
  end
end
