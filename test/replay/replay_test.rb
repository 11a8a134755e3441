# frozen_string_literal: true

require_relative "../trace/trace_helper"

# The replay does what was recorded, with any allocator, and detects a faulty one.
class ReplayTest < Minitest::Test
  include TraceHelper

  FIXTURES.each do |file|
    name = File.basename(file, ".trace")

    define_method(:"test_the_fixture_#{name}_is_small_and_whole") do
      assert_operator File.size(file), :<, 300_000
      facts = info(file)
      assert_whole facts
      assert_operator facts["operations"], :>, 10_000
      assert_equal facts["operations"], facts.values_at("malloc", "calloc", "aligned", "realloc", "free").sum
    end

    Culet::Allocators.names.each do |allocator|
      define_method(:"test_#{allocator}_plays_#{name}_and_keeps_every_byte") do
        choice = Culet::Allocators.parse(allocator)
        skip "#{allocator} is not installed" unless choice.available?

        result = play(file, env: choice.environment({}), touch: "check")
        assert_equal info(file), result["trace"]
        samples = result["play"]["samples"]
        assert_equal result["trace"]["operations"], samples.last["operation"]
        assert_equal result["trace"]["left_bytes"], samples.last["live_bytes"]
        assert_equal result["trace"]["peak_live_bytes"], samples.map { |sample| sample["live_bytes"] }.max
        assert_operator result["play"]["peak_resident_bytes"], :>=, result["trace"]["peak_live_bytes"]
      end
    end
  end

  def test_threads_are_threads_and_one_is_one
    file = FIXTURES.grep(/threads/).first
    assert_operator info(file)["threads"], :>, 20
    single = play(file, single: true)
    assert_equal 1, single["trace"]["threads"]
    assert_equal info(file).except("threads"), single["trace"].except("threads")
  end

  def test_memory_that_is_not_touched_is_not_resident
    record(compile("char *p = malloc(50000000); p[0] = 1; free(p);"))
    touched, none = %w[line none].map { |touch| play(touch: touch)["play"]["peak_resident_bytes"] }
    assert_operator touched, :>, 50_000_000
    assert_operator none, :<, 10_000_000
  end

  def test_the_players_own_memory_is_not_counted
    record(compile("for (int i = 0; i < 300000; i++) free(malloc(100));"))
    assert_operator play["play"]["peak_resident_bytes"], :<, 2_000_000
  end

  # At least as long as recorded; how much longer is the machine's matter.
  def test_pauses_are_kept_when_asked_for
    record(compile("for (int i = 0; i < 100; i++) free(malloc(100)); usleep(300000); for (int i = 0; i < 100; i++) free(malloc(100));"))
    paced = play(paced: true)
    assert_operator paced["trace"]["recorded_seconds"], :>=, 0.3
    assert_operator paced["play"]["wall_seconds"], :>=, 0.29
    assert_operator paced["play"]["samples"].size, :>, 4
  end

  BROKEN = {
    "hands_a_block_out_twice" => ["static char *last; void *malloc(size_t n) { if (n == 1003 && last) return last; " \
                                  "char *p = __libc_malloc(n); if (n == 1001) last = p; return p; }", /changed byte 0 of a live block of 1001 bytes/],
    "calloc_is_not_zeroed" => ["void *calloc(size_t n, size_t m) { char *p = __libc_malloc(n * m); memset(p, 1, n * m); return p; }", /not all zero/],
    "does_not_align" => ["int posix_memalign(void **b, size_t a, size_t n) { char *p = __libc_malloc(n + 2 * a); " \
                         "*b = (void *)(((uintptr_t)p + a) / a * a + 8); return 0; }", /is not aligned to 256/],
    "has_no_memory" => ["void *malloc(size_t n) { return n == 1003 ? NULL : __libc_malloc(n); }", /returned no memory for a block of 1003 bytes/]
  }.freeze

  BROKEN.each do |fault, (source, message)|
    define_method(:"test_an_allocator_that_#{fault}_is_found_out") do
      record(compile("char *a = malloc(1001), *b = malloc(1003), *c = calloc(1, 1005); void *d; posix_memalign(&d, 256, 1007); free(a); free(c);"))
      library = compile("void *__libc_malloc(size_t);\n#{source}", "-shared", "-fPIC", name: "libbroken.so")
      error = assert_raises(Culet::Error) { play(env: { "LD_PRELOAD" => library }, touch: "check") }
      assert_match message, error.message
    end
  end

  def test_an_allocator_that_crashes_is_told
    record(compile("free(malloc(1003));"))
    library = compile("void *__libc_malloc(size_t);\n" \
                      "void *malloc(size_t n) { if (n == 1003) raise(SIGSEGV); return __libc_malloc(n); }",
                      "-shared", "-fPIC", name: "libcrash.so")
    error = assert_raises(Culet::Error) { play(env: { "LD_PRELOAD" => library }) }
    assert_equal "the replay was ended by SIGSEGV", error.message
  end
end
