# frozen_string_literal: true

require_relative "trace_helper"

# What the recorder writes, of programs whose allocations are known.
class RecordingTest < Minitest::Test
  include TraceHelper

  EVERY_FUNCTION = <<~C
    char *a = malloc(1001), *b = calloc(7, 143), *c, *d; void *e;
    a = realloc(a, 5003);
    c = realloc(NULL, 1009);
    realloc(c, 0);
    posix_memalign(&e, 256, 1013);
    free(e);
    e = aligned_alloc(64, 1088);
    d = memalign(32, 1019);
    free(d);
    d = reallocarray(NULL, 11, 93);
    d = realloc(d, 100 * 1024 * 1024);
    e = malloc((size_t)1 << 60);
    if (e || realloc(d, (size_t)1 << 60) || posix_memalign(&e, 3, 8) != 22) abort();
    free(NULL);
    free(b);
    free(a);
    d[99] = 1;
    free(d);
  C

  def test_every_function_is_recorded_exactly
    record(compile(EVERY_FUNCTION))
    expected = [%w[malloc 0 1001], %w[calloc 1 1001], %w[realloc 0 5003], %w[malloc 2 1009], %w[free 2], %w[aligned 2 1013 256],
                %w[free 2], %w[aligned 2 1088 64], %w[aligned 3 1019 32], %w[free 3], %w[malloc 3 1023],
                %w[realloc 3 104857600], %w[free 1], %w[free 0], %w[free 3]]
    assert_equal expected, operations
    assert_whole info
    assert_equal [1088, 1], info.values_at("left_bytes", "left_blocks")
  end

  def test_names_of_other_files_that_are_no_text
    ["\xFF", "\u00e9.trace.\xFF"].each { |name| File.write(path(name), "") }
    2.times { record("sh", "-c", "true & wait", file: path("\u00e9.trace")) }
    assert_equal ["\u00e9.trace"], Culet::Trace::Files.new(path("\u00e9.trace")).files.map { |file| File.basename(file)[/\A[^.]*\.trace/] }.uniq
    assert_equal 2, Culet::Trace::Files.new(path("\u00e9.trace")).files.size
  end

  def test_every_size_is_recorded_exactly
    record(compile("for (size_t i = 0; i < 3000; i++) free(malloc(i)); for (int i = 12; i < 32; i++) free(malloc((size_t)1 << i));"))
    recorded = operations.filter_map { |name, _, bytes| bytes.to_i if name == "malloc" }
    assert_nil ((0...3000).to_a + (12...32).map { |i| 1 << i }).zip(recorded).find { |size, one| size != one }
  end

  THREADS = <<~C
    enum { THREADS = 4, ROUNDS = 20000, SHARED = 512 };
    static void *_Atomic shared[SHARED];
    static void *work(void *own) {
      unsigned seed = (unsigned)(uintptr_t)own;
      for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 1103515245 + 12345;
        void *_Atomic *place = &shared[seed >> 20 & (SHARED - 1)];
        void *mine = atomic_exchange(place, NULL);
        if (seed >> 16 & 1) mine = realloc(mine, 1 + (seed >> 22));
        else { free(mine); mine = malloc(1 + (seed >> 22)); }
        free(atomic_exchange(place, mine));
      }
      return NULL;
    }
    int main(void) {
      pthread_t ids[THREADS];
      for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&ids[i], NULL, work, (void *)(i + 1));
      for (int i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
      for (int i = 0; i < SHARED; i++) free(shared[i]);
      return 0;
    }
  C

  # Blocks pass from thread to thread and are reallocated on the way: one event out of order, and a free has no malloc.
  def test_threads_that_pass_blocks_on_are_in_an_order_that_can_be
    record(compile("#include <stdatomic.h>\n#{THREADS}"))
    facts = info
    assert_whole facts
    assert_equal 5, facts["threads"]
    assert_equal 80_000, facts["malloc"] + facts["realloc"]
    assert_operator facts["left_blocks"], :<=, 8, "libc's own, of its threads"
    assert_equal facts["operations"], play(touch: "check")["trace"]["operations"]
  end

  def test_threads_that_come_and_go_write_into_one_part
    record(compile("static void *work(void *x) { free(malloc(777)); return x; } " \
                   "int main(void) { for (int i = 0; i < 1000; i++) { pthread_t t; pthread_create(&t, NULL, work, NULL); pthread_join(t, NULL); } return 0; }"))
    assert_equal [%w[malloc 777]] * 1000, asked(777)
    assert_operator File.size(path), :<, 200_000
    assert_whole info
  end

  def test_a_forked_child_has_a_file_of_its_own_that_goes_on_from_the_parents
    record(compile("char *before = malloc(1001); if (!fork()) { free(before); free(malloc(1003)); _exit(0); } wait(NULL); free(malloc(1005));"))
    assert_equal 2, files.size
    child = path(files.last)
    assert_equal [[%w[malloc 1001], %w[malloc 1005]], [%w[malloc 1001], %w[malloc 1003]]],
                 [asked(1001, 1003, 1005), asked(1001, 1003, 1005, file: child)]
    assert_whole info(child)
    assert_equal 1, info(child)["inherited_operations"]
    header = Culet::Trace::Header.read(child)
    assert_equal ["t.trace", Culet::Trace::Header.read(path).pid], [header.parent, header.parent_pid]

    File.unlink(path)
    assert_equal [1, true, 1], info(child).values_at("unknown_blocks", "parent_missing", "malloc")
  end

  def test_a_grandchild_follows_its_line
    record(compile("free(malloc(1001)); if (!fork()) { free(malloc(1003)); if (!fork()) { free(malloc(1005)); _exit(0); } wait(NULL); _exit(0); } " \
                   "wait(NULL);"))
    assert_equal 3, files.size
    last = files.drop(1).max_by { |file| info(path(file))["operations"] }
    assert_equal %w[1001 1003 1005], asked(1001, 1003, 1005, file: path(last)).map(&:last)
  end

  # A child may be born at any moment of its parent's recording: wherever the last event left off.
  def test_a_child_forked_after_any_number_of_events_records
    record(compile("for (int i = 0; i < 70; i++) { malloc(1001); pid_t p = fork(); if (!p) { free(malloc(1003)); _exit(0); } " \
                   "int s; waitpid(p, &s, 0); if (s) abort(); }"))
    assert_equal 71, files.size
    files.drop(1).each { |file| assert_equal [%w[malloc 1003]], asked(1003, file: path(file)) }
  end

  # clone(2) runs no handler of pthread_atfork's.
  def test_a_child_that_libc_knows_nothing_of_leaves_the_parents_file_alone
    record(compile("free(malloc(1001)); if (!syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) { for (int i = 0; i < 100; i++) free(malloc(1003)); _exit(0); } " \
                   "wait(NULL); free(malloc(1005));"))
    assert_equal [%w[malloc 1001], %w[malloc 1005]], asked(1001, 1003, 1005)
    assert_equal 100, asked(1003, file: path(files.last)).size
  end

  # As `bundle exec` does.
  def test_an_executed_program_goes_on_in_the_file_of_its_process
    second = compile("for (int i = 0; i < 20000; i++) free(malloc(1003)); malloc(1005);", name: "second")
    record(compile("malloc(1001); execl(argv[1], argv[1], NULL);"), second)
    assert_equal ["t.trace"], files
    assert_equal 20_000, asked(1003).size
    assert_equal [%w[malloc 1005]], asked(1001, 1005)
    header = Culet::Trace::Header.read(path)
    assert_equal [[second], 2], [header.command, header.programs]
    assert_whole info
    assert_equal 1005, play["trace"]["left_bytes"]
  end

  def test_launchers_in_ruby_and_shell
    File.write(path("app.rb"), "Array.new(700) { 'x' * 5003 }")
    launcher = ["-rrbconfig", "-e", "exec(RbConfig.ruby, '--disable-gems', *ARGV)"]
    record("sh", "-c", 'exec "$@"', "sh", RbConfig.ruby, "--disable-gems", *launcher, path("app.rb"))
    assert_equal ["t.trace"], files
    assert_equal 700, asked(5004).size
    assert_equal [RbConfig.ruby, "--disable-gems", path("app.rb")], Culet::Trace::Header.read(path).command
  end

  # Children of each program, one of which executes a program too.
  def test_children_of_the_programs_of_one_process
    child = compile("free(malloc(1009));", name: "child")
    second = compile("malloc(1003); if (!fork()) { free(malloc(1004)); _exit(0); } wait(NULL); " \
                     "if (!fork()) { malloc(1006); execl(argv[1], argv[1], NULL); } wait(NULL);", name: "second")
    record(compile("malloc(1001); if (!fork()) { free(malloc(1002)); _exit(0); } wait(NULL); execl(argv[1], argv[1], argv[2], NULL);"),
           second, child)
    found = files.drop(1).map { |file| asked(1001, 1002, 1003, 1004, 1006, 1009, file: path(file)).map { |_, bytes| bytes.to_i } }
    assert_equal [[1001, 1002], [1003, 1004], [1009]], found
    assert_equal [[1003]], [asked(1001, 1003).map { |_, bytes| bytes.to_i }]
    files.each { |file| assert_equal false, info(path(file))["parent_missing"], file }
  end

  # The process number of an ended process may come again.
  def test_a_file_of_another_process_is_left_alone
    program = compile("free(malloc(1001)); execl(argv[1], argv[1], NULL);")
    record(program, compile("free(malloc(1003));", name: "second"))
    bytes = File.binread(path)
    env = { "LD_PRELOAD" => Culet::Native.preloadable("replay", "culet-trace.so"), "CULET_TRACE_FILE" => path }
    out, err, status = run_program(path("second"), env: NEUTRAL.merge(env))
    assert_equal ["", "", true], [out, err, status.success?]
    assert_equal bytes, File.binread(path)
    assert_equal [%w[malloc 1003]], asked(1003, file: path(files.last))
  end

  def test_what_a_killed_process_did_is_there
    record(compile("for (int i = 0; i < 30000; i++) free(malloc(1001)); kill(getpid(), SIGKILL);"), success: false)
    assert_includes 29_700..30_000, asked(1001).size
    assert_whole info
  end

  def test_a_file_is_readable_while_it_is_recorded_and_when_all_is_killed
    program = compile("free(malloc(1001)); for (int i = 0; i < 1000; i++) free(malloc(1003)); puts(\"up\"); fflush(stdout); pause();")
    with_program(*culet_command, "trace", "-o", path, "--", program, env: NEUTRAL) do
      assert_equal [%w[malloc 1001]], asked(1001)
    end
    assert_equal [%w[malloc 1001]], asked(1001)
  end

  def test_a_program_that_closes_descriptors_and_changes_its_folder_is_recorded_on
    record(compile("for (int i = 0; i < 200; i++) close(i); chdir(\"/\"); for (int i = 0; i < 50000; i++) free(malloc(1001));"))
    assert_equal 50_000, asked(1001).size
  end

  def test_a_program_that_loses_its_file_runs_on
    program = compile("free(malloc(1)); unlink(argv[1]); for (int i = 0; i < 50000; i++) free(malloc(1001)); puts(\"done\");")
    out, err, status = run_culet("trace", "-o", path, "--", program, path, env: NEUTRAL)
    assert_equal [1, "done\n"], [status.exitstatus, out]
    assert_match(/\Aculet: stopped recording process \d+: #{path}: No such file/, err.lines.first)
    assert_match(/\Aculet: nothing was recorded/, err.lines.last)
  end

  # Cut off from inside, so that it is certain when; a shell's > does the same.
  def test_a_program_whose_file_is_cut_off_runs_on
    program = compile("for (int i = 0; i < 50000; i++) { free(malloc(1001)); if (i == 20000 && truncate(argv[1], atoi(argv[2]))) return 3; } puts(\"done\");")
    [0, 5000].each do |bytes|
      out, err, status = run_culet("trace", "-o", path, "--", program, path, bytes.to_s, env: NEUTRAL)
      assert_equal "done\n", out
      assert_match(/\Aculet: stopped recording process \d+: #{path}: it was truncated or replaced/, err.lines.first)
      refute_match(/ended by/, err)
      assert_equal bytes.zero? ? 1 : 0, status.exitstatus, err
      FileUtils.rm_f(path)
    end
  end

  # Servers come to the limit of their descriptors: the recording ends there, and has all until then.
  def test_a_program_without_free_descriptors_runs_on
    program = compile("#include <fcntl.h>\nint main(void) { for (int i = 0; i < 20000; i++) free(malloc(1001)); while (dup(1) >= 0); " \
                      "for (int i = 0; i < 20000; i++) free(malloc(1003)); puts(\"done\"); return 0; }")
    out, err, status = run_program("sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *culet_command, "trace", "-o", path, "--", program, env: NEUTRAL)
    assert_equal ["done\n", true], [out, status.success?], err
    assert_match(/stopped recording process \d+: .*Too many open files/, err)
    assert_includes 19_700..20_000, asked(1001).size
    assert_whole info
  end

  # A handler may come while the recorder writes, and something was written before.
  def test_exit_in_a_signal_handler
    program = compile("#include <signal.h>\n#include <sys/time.h>\nstatic void end(int s) { (void)s; _exit(0); }\n" \
                      "int main(void) { for (int i = 0; i < 10000; i++) free(malloc(1001)); signal(SIGALRM, end); " \
                      "struct itimerval t = {.it_value = {.tv_usec = 5000 + getpid() % 64 * 100}}; setitimer(ITIMER_REAL, &t, NULL); for (;;) free(malloc(1001)); }")
    20.times do
      record(program)
      assert_whole info
    end
  end

  def test_the_recorder_without_a_file_records_nothing
    _, err = assert_success(compile("free(malloc(1001));"), env: NEUTRAL.merge("LD_PRELOAD" => Culet::Native.preloadable("replay", "culet-trace.so")))
    assert_equal ["", ["program", "program.c"]], [err, Dir.children(@directory).sort]
  end

  # As in a daemon that outlives `culet trace`.
  def test_without_culet_trace_the_recorder_writes_by_itself
    environment = NEUTRAL.merge("LD_PRELOAD" => Culet::Native.preloadable("replay", "culet-trace.so"), "CULET_TRACE_FILE" => path)
    program = compile("for (int i = 0; i < 30000; i++) free(malloc(1001)); malloc(1003); if (argc > 1) kill(getpid(), SIGKILL);")
    _, err, status = run_program(program, env: environment)
    assert_equal [0, ""], [status.exitstatus, err]
    assert_equal [30_000, 1], [asked(1001).size, asked(1003).size]
    FileUtils.rm_f(path)
    run_program(program, "killed", env: environment)
    assert_includes 29_700..30_000, asked(1001).size
    assert_whole info
  end

  def test_what_outlives_culet_trace_is_recorded_on
    program = compile("free(malloc(1001)); if (fork()) _exit(0); setsid(); fclose(stdout); fclose(stderr); " \
                      "while (access(argv[1], F_OK)) usleep(5000); for (int i = 0; i < 50000; i++) free(malloc(1003)); rename(argv[1], argv[2]);")
    record(program, path("go"), path("gone"))
    FileUtils.touch(path("go"))
    assert_settles("the child is done") { File.exist?(path("gone")) }
    child = path(files.last)
    assert_settles(-> { "all events, not #{asked(1003, file: child).size}" }) { asked(1003, file: child).size == 50_000 }
    assert_whole info(child)
  end

  def test_no_room_for_the_file_stops_the_recording_and_not_the_program
    program = compile("for (int i = 0; i < 50000; i++) free(malloc(1001)); puts(\"done\");")
    out, err = assert_success("sh", "-c", "ulimit -f 300; exec \"$@\"", "sh", *culet_command, "trace", "-o", path, "--", program, env: NEUTRAL)
    assert_equal "done\n", out
    assert_match(/stopped recording process \d+: .*File too large/, err)
    assert_match(/ends before its program did: its file could no longer be written/, err)
    assert_includes 1..49_999, asked(1001).size
    assert_whole info
  end

  # Blocks of all threads, in every state, at every fork.
  # A write that writes nothing leaves errno as an earlier call has set it.
  def test_a_file_that_takes_nothing_stops_the_recording_and_not_the_program
    library = compile("#include <errno.h>\nssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { errno = EINTR; return 0; }\n" \
                      "ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { errno = EINTR; return 0; }", "-shared", "-fPIC", name: "nothing.so")
    recorder = Culet::Native.preloadable("replay", "culet-trace.so")
    out, err = assert_success(compile("free(malloc(1001)); puts(\"done\");"), env: NEUTRAL.merge("LD_PRELOAD" => "#{recorder}:#{library}", "CULET_TRACE_FILE" => path))
    assert_equal "done\n", out
    assert_match(/\Aculet: cannot record process \d+: .*t\.trace: Input\/output error\n\z/, err)
  end

  def test_forks_among_threads_that_allocate
    skip_unless_all

    forks = "for (int f = 0; f < 100; f++) { pid_t p = fork(); if (!p) { for (int i = 0; i < 500; i++) free(malloc(i)); _exit(0); } " \
            "int s; waitpid(p, &s, 0); if (s) abort(); }"
    record(compile("#include <stdatomic.h>\n#{THREADS.sub("for (int i = 0; i < THREADS; i++) pthread_join") { |join| "#{forks} #{join}" }}"))
    assert_equal 101, files.size
    files.each { |file| assert_whole info(path(file)) }
  end

  def test_the_limit_stops_the_recording_and_not_the_program
    err = record(compile("for (int i = 0; i < 50000; i++) free(malloc(1001));"), options: %w[--limit 128K])
    assert_match(/t\.trace ends before its program did: the size limit was reached/, err)
    assert_includes 1..49_999, asked(1001).size
    assert_operator File.size(path), :<=, (128 + 64) * 1024
  end

  Culet::Allocators.names.each do |name|
    define_method(:"test_a_ruby_on_#{name}_is_recorded") do
      skip "#{name} is not installed" unless Culet::Allocators.parse(name).available?

      script = "a = Array.new(1_000) { |i| 'x' * i }; Thread.new { a.map(&:upcase) }.join; print File.read('/proc/self/maps')[/\\S*lib#{name}\\S*/]"
      out, = assert_culet_success("trace", "-o", path, "-a", name, "--", RbConfig.ruby, "--disable-gems", "-e", script, env: NEUTRAL)
      assert_equal name == "glibc", out.empty?
      assert_equal name, Culet::Trace::Header.read(path).allocator
      facts = info
      assert_whole facts
      assert_operator facts["operations"], :>, 5_000
      assert_operator facts["threads"], :>=, 2
    end
  end
end
