# frozen_string_literal: true

require_relative "verb_helper"
require "culet/tools/profile"

# Commands that are profiled on another allocator than culet's: malloc is sampled by a preloaded library (sampler/preload).
class ProfileOtherAllocatorsTest < Minitest::Test
  include ProfileVerbHelper

  PEERS = %w[jemalloc glibc tcmalloc mimalloc].freeze

  # Each function that begins with keep_ keeps 2 MB, or with fork_ or thread_; those of drop_ keep nothing.
  C_PROGRAM = <<~C
    #define _GNU_SOURCE
    #include <malloc.h>
    #include <pthread.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    #define BLOCKS 500
    #define BYTES 4000
    #define FUNCTION __attribute__((noinline)) static void
    static void *kept[16][BLOCKS], *handed[BLOCKS];
    FUNCTION keep_malloc(void) { for (int i = 0; i < BLOCKS; i++) kept[0][i] = memset(malloc(BYTES), 1, BYTES); }
    FUNCTION keep_calloc(void) { for (int i = 0; i < BLOCKS; i++) kept[1][i] = calloc(BYTES / 8, 8); }
    FUNCTION keep_aligned(void)
    {
        for (int i = 0; i < BLOCKS; i += 5) {
            kept[2][i] = memalign(64, BYTES);
            kept[2][i + 1] = aligned_alloc(32, BYTES);
            if (posix_memalign(&kept[2][i + 2], 128, BYTES)) abort();
            kept[2][i + 3] = valloc(BYTES);
            kept[2][i + 4] = malloc(BYTES);
        }
    }
    FUNCTION grow(int i) { for (int bytes = 500; bytes <= BYTES; bytes *= 2) kept[3][i] = realloc(kept[3][i], bytes); }
    FUNCTION keep_realloc(void)
    {
        for (int i = 0; i < BLOCKS; i++) { grow(i); kept[3][i] = reallocarray(kept[3][i], BYTES / 8, 8); }
    }
    FUNCTION keep_shrunk(void) { for (int i = 0; i < BLOCKS; i++) kept[4][i] = realloc(malloc(100 * BYTES), BYTES); }
    /* A realloc that fails leaves the block. */
    FUNCTION keep_after_failure(void)
    {
        for (int i = 0; i < BLOCKS; i++) { kept[5][i] = malloc(BYTES); if (realloc(kept[5][i], PTRDIFF_MAX)) abort(); }
    }
    FUNCTION keep_large(void)
    {
        /* Resident, or it would not count. */
        kept[6][0] = memset(malloc(1 << 20), 1, 1 << 20);
        kept[6][1] = memset(realloc(malloc(100), 951424), 1, 951424);
    }
    FUNCTION drop_all(void)
    {
        void *block[BLOCKS];
        for (int round = 0; round < 20; round++) {
            for (int i = 0; i < BLOCKS; i++) block[i] = i % 3 ? malloc(BYTES) : i % 2 ? calloc(1, BYTES) : aligned_alloc(64, BYTES);
            for (int i = 0; i < BLOCKS; i++) if (i % 2) free(block[i]); else block[i] = realloc(block[i], 10 + i * 30);
            for (int i = 0; i < BLOCKS; i += 2) free(block[i]);
        }
    }
    FUNCTION drop_handed(void) { for (int i = 0; i < BLOCKS; i++) handed[i] = malloc(BYTES); }
    FUNCTION thread_keep(int n) { for (int i = 0; i < BLOCKS / 4; i++) kept[8 + n][i] = malloc(BYTES); }
    static void *thread(void *number)
    {
        int n = (int)(intptr_t)number;
        thread_keep(n);
        drop_all();
        for (int i = n; i < BLOCKS; i += 4) free(handed[i]);
        return NULL;
    }
    FUNCTION threads(void)
    {
        pthread_t all[4];
        drop_handed();
        for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, thread, (void *)(intptr_t)i);
        for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
    }
    FUNCTION fork_keep(void) { for (int i = 0; i < BLOCKS; i++) kept[12][i] = malloc(BYTES); }
    int main(void)
    {
        keep_malloc(), keep_calloc(), keep_aligned(), keep_realloc(), keep_shrunk(), keep_after_failure(), keep_large();
        drop_all(), threads();
        if (fork() == 0) {
            fork_keep();
            for (int i = 0; i < BLOCKS; i++) free(kept[0][i]);
            exit(0);
        }
        wait(NULL);
        exit(0);
    }
  C
  # The child has freed its copies of the blocks, which are still its parent's.
  C_SITES = %w[keep_malloc keep_calloc keep_aligned keep_realloc keep_shrunk keep_after_failure keep_large thread_keep fork_keep].freeze
  SITE_BYTES = 2_000_000

  # bin/test --all tries the other allocators as well.
  FIRST = %w[glibc jemalloc].freeze

  PEERS.each do |name|
    define_method("test_the_sites_of_a_c_program_on_#{name}") do
      skip_unless_all unless FIRST.include?(name)
      in_directory do |folder|
        document = profile("--allocator", name, "--sample", "8k", "--", compile(folder, C_PROGRAM))
        assert_equal 2, document["processes"].size
        sites = document["sites"].group_by { |site| known(site) }
        C_SITES.each { |site| assert_estimate(SITE_BYTES, sites.fetch(site), site) }
        # A free that is not seen would leave a block here.
        assert_empty sites.keys.grep(/drop_/)
      end
    end

    define_method("test_a_ruby_program_on_#{name}") do
      skip_unless_all unless FIRST.include?(name)
      in_directory do |folder|
        code = "pids = Array.new(2) { fork { keep(250) } }; keep(500); pids.each { |pid| Process.wait(pid) }\n" \
               "system('/bin/sh', '-c', 'exit 0'); puts File.foreach('/proc/self/maps').grep(/lib#{name}/).any?"
        document = profile("--allocator", name, "--sample", "16k", "--by", "line", "--", RbConfig.ruby, program(folder, code))
        assert_kept(document)
        # As on culet's allocator, programs that Ruby starts are not profiled.
        assert_equal 3, document["processes"].size
        assert_equal "#{name != "glibc"}\n", @err
      end
    end
  end

  # Each line keeps strings whose buffers have so many bytes: bytes of a buffer => buffers. The rest is churn.
  SITES = { 500 => 4000, 3000 => 700, 20_000 => 100, 300_000 => 7, 3_000_000 => 1 }.freeze
  LINES = SITES.map { |bytes, count| "#{count}.times { 3.times { 'y' * #{bytes / 2} }; KEPT[$kept] = 'x' * #{bytes - 1}; $kept += 1 }" }
  SITES_PROGRAM = ["KEPT = Array.new(#{SITES.values.sum}); $kept = 0", *LINES, "3.times { GC.start }", ""].join("\n")
  # Runs of the program, and cases that must be right: of 25, 95 % are 24, and fewer than 18 come once in 50,000 times; of 60,
  # 95 % are 57, and fewer than 50 come once in 5,000 times.
  RUNS, RIGHT = ENV.key?("CULET_TEST_ALL") ? [12, 50] : [5, 18]

  def test_the_truth_is_within_the_interval_in_19_of_20_cases
    folder = new_folder
    path = File.join(folder, "sites.rb")
    File.write(path, SITES_PROGRAM)
    cases = Array.new(RUNS) { |run| truths(path, File.join(folder, run.to_s)) }.flatten
    assert_operator cases.count(true), :>=, RIGHT, "of #{cases.size}"
  end

  FORKS = ENV.key?("CULET_TEST_ALL") ? "-DFORKS=100" : "-DFORKS=30"

  # Samples every few blocks, in threads, and in children that are forked meanwhile.
  STRESS = <<~C
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    #define SLOTS 1000
    #define KEPT 200
    #ifndef FORKS
    #define FORKS 100
    #endif
    static void *kept[KEPT];
    static _Atomic int over;
    static void *_Atomic shared[SLOTS];
    static void churn(unsigned seed, int steps)
    {
        while (steps-- && !over) {
            seed = seed * 1664525 + 1013904223;
            size_t bytes = (seed >> 8) % 3000;
            void *block = seed >> 30 == 0 ? calloc(1, bytes) : seed >> 30 == 1 ? realloc(malloc(bytes / 2), bytes) : malloc(bytes);
            if (block && bytes) memset(block, 1, bytes);
            free(__atomic_exchange_n((void **)&shared[(seed >> 12) % SLOTS], block, __ATOMIC_ACQ_REL));
        }
    }
    static void *work(void *seed) { churn((unsigned)(size_t)seed, -1); return NULL; }
    static void check_child(pid_t pid)
    {
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status) { printf("child %x\\n", status); exit(1); }
    }
    int main(void)
    {
        pthread_t thread[4];
        for (int i = 0; i < KEPT; i++) kept[i] = malloc(1000);
        for (size_t i = 0; i < 4; i++) pthread_create(&thread[i], NULL, work, (void *)(i + 1));
        for (int i = 0; i < FORKS; i++) {
            pid_t pid = fork();
            if (pid == 0) { churn(i, 2000); _exit(0); }
            check_child(pid);
        }
        for (int i = 0; i < FORKS && RAW; i++) {
            pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
            if (pid == 0) { for (int k = 0; k < KEPT; k++) { free(kept[k]); free(malloc(1000)); } exit(0); }
            check_child(pid);
        }
        over = 1;
        for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < SLOTS; i++) free(shared[i]);
        puts("done");
        return 0;
    }
  C

  def test_threads_and_forks
    folder = new_folder
    command = compile(folder, STRESS, "-DRAW=0", FORKS)
    (all_tests? ? PEERS : FIRST).each do |name|
      assert_empty churned(name, command), name
    end
  end

  # Such a child finds the locks as they are at the moment: it is not sampled. In glibc its main thread has an arena of its own.
  def test_children_of_the_system_call
    folder = new_folder
    assert_empty churned("glibc", compile(folder, STRESS, "-DRAW=1", FORKS))
  end

  def test_settings_and_errors
    folder = new_folder
    out, err, status = run_culet("profile", "--allocator", "jemalloc:narenas=3", "--json", "--", RbConfig.ruby, "-e", "puts ENV[%(MALLOC_CONF)]", env: TestHelper::NEUTRAL)
    assert_predicate status, :success?, err
    assert_equal ["narenas:3\n", "live"], [err, JSON.parse(out)["view"]]
    assert_refused(/there is no allocator "other"/, "--allocator", "other", "--", "true", status: 2)
    assert_refused(/--allocator needs a command/, "--allocator", "jemalloc", "1", status: 2)
    path = compile(folder, "#include <unistd.h>\nint main(void) { _exit(0); }")
    assert_refused(/no process wrote a profile: #{path} could not be sampled, or/, "--allocator", "glibc", "--", path)
  end

  # The sampler is not preloaded where nobody asks for it.
  def test_another_allocator_alone_has_objects_alone
    folder = new_folder
    path = File.join(folder, "profile")
    env = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("jemalloc").environment({})).merge("CULET_PROFILE" => "4k", "CULET_PROFILE_OUT" => path)
    assert_success(RbConfig.ruby, "-I#{LIBRARY}", "-rculet/profile", program(folder, "keep(100); 10_000.times { KEPT << Object.new }"), env: env)
    assert_empty Culet::Profile::Data.new([Culet::Profile::Stream.load(path).recording]).sites(:allocated).map(&:kind) - [:object]
  end

  private

  def compile(folder, source, *flags)
    compile_c(File.join(folder, "program"), source, "-O1", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-pthread", *flags)
  end

  # @return [Array<Hash>] sites of what the threads have allocated, and freed
  def churned(allocator, command)
    document = profile("--allocator", allocator, "--sample", "300", "--", command)
    assert_equal ["done\n", 1], [@err, document["processes"].size]
    document["sites"].select { |site| site["frames"].any? { |frame| frame["method"] == "churn" } }
  end

  def known(site) = site["frames"].map { |frame| frame["method"] }.find { |name| name&.match?(/\A(keep|drop|thread|fork)_/) }

  # Within four standard deviations: outside once in 15,000 times.
  def assert_estimate(bytes, sites, name)
    deviation = Math.sqrt(sites.sum { |site| ((site["high_bytes"] - site["low_bytes"]) / 3.92)**2 })
    assert_in_delta bytes, sites.sum { |site| site["bytes"] }, 4 * deviation, name
  end

  def truths(path, out)
    profile("--allocator", "jemalloc", "--sample", "64k", "--save", out, "--", RbConfig.ruby, "--disable-gems", path)
    # The slots of the strings are samples of their own.
    live = Culet::Profile::Data.new([Culet::Profile::Stream.load(out).recording]).sites(:live).select { |site| site.kind == :malloc }
    sites = live.group_by { |site| site.names(:line).first }
    SITES.each_with_index.map do |(bytes, count), at|
      sum = sites.fetch("#{path}:#{at + 2}", []).map(&:estimate).reduce(:+)
      sum ? (bytes * count).between?(sum.low_bytes.floor, sum.high_bytes.ceil) : false
    end
  end
end
