# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "json"

class DoctorTest < Minitest::Test
  TestHelper.allocators.each do |name|
    define_method(:"test_a_process_on_#{name}_is_recognised") do
      on(name) do |pid|
        report = examine(pid)
        assert_equal name, report.dig("allocator", "name")
        assert_equal "ok", finding(report, "allocator")["verdict"]
        library = Culet::Allocators.parse(name).library
        assert_equal File.realpath(library), File.realpath(report.dig("allocator", "library")) if library
      end
    end

    define_method(:"test_a_process_on_#{name}_that_wrote_its_title_over_its_environment_is_recognised") do
      on(name, "$0 = 'puma: ' + 'x' * 9000; #{WAITING}") do |pid|
        refute_includes File.binread("/proc/#{pid}/environ"), "PATH="
        report = examine(pid)
        assert_equal name, report.dig("allocator", "name")
        assert_match(/the environment is unknown/, finding(report, "preload")["text"])
      end
    end
  end

  def test_an_allocator_wished_for_and_not_active_is_bad
    env = NEUTRAL.merge("LD_PRELOAD" => "/opt/missing/libjemalloc.so.2", "MALLOC_CONF" => "narenas:2")
    with_program(RbConfig.ruby, "-e", WAITING, env: env, err: File::NULL) do |pid|
      report = examine(pid)
      assert_equal "glibc", report.dig("allocator", "name")
      preload = finding(report, "preload")
      assert_equal "bad", preload["verdict"]
      assert_match(%r{/opt/missing/libjemalloc\.so\.2, which is not loaded: the file does not exist}, preload["text"])
      assert_match(/culet run --allocator jemalloc/, preload["remedy"])
      assert_equal "bad", finding(report, "settings")["verdict"]
    end
  end

  def test_an_allocator_opened_too_late_is_bad
    library = Culet::Allocators.parse("mimalloc").library
    directory = new_folder
    program = compile(directory, <<~C, "-ldl")
      #include <dlfcn.h>
      #include <stdio.h>
      #include <unistd.h>
      int main(void) { if (!dlopen("#{library}", RTLD_NOW | RTLD_GLOBAL)) return 1; puts("up"); fflush(stdout); pause(); }
    C
    with_program(program, env: NEUTRAL) do |pid|
      report = examine(pid)
      assert_equal "glibc", report.dig("allocator", "name")
      bad = report["findings"].find { |one| one["topic"] == "allocator" && one["verdict"] == "bad" }
      assert_match(/mimalloc is loaded .* does not serve malloc/, bad["text"])
      assert bad["remedy"]
    end
  end

  def test_an_allocator_the_program_is_linked_with_is_recognised
    library = Culet::Allocators.parse("jemalloc").library
    directory = new_folder
    program = compile(directory, waiting_c, "-Wl,--no-as-needed", library)
    with_program(program, env: NEUTRAL) { |pid| assert_equal "jemalloc", examine(pid).dig("allocator", "name") }
  end

  def test_an_allocator_of_the_programs_own_is_said_to_be_unknown
    directory = new_folder
    own = <<~C
      #include <stddef.h>
      static char store[1 << 20]; static size_t used;
      void *malloc(size_t n) { void *p = store + used; used += (n + 15) & ~(size_t)15; return p; }
      void free(void *p) { (void)p; }
      #{waiting_c}
    C
    program = compile(directory, own, "-rdynamic", "-fno-builtin")
    with_program(program, env: NEUTRAL) do |pid|
      report = examine(pid)
      assert_nil report.dig("allocator", "name")
      assert_equal program, report.dig("allocator", "library")
      assert_match(/an unknown allocator/, finding(report, "allocator")["text"])
    end
  end

  def test_a_static_program_is_described
    directory = new_folder
    program = compile(directory, waiting_c, "-static")
    with_program(program, env: NEUTRAL) do |pid|
      report = examine(pid)
      assert_nil report.dig("allocator", "library")
      assert_match(/the program is static/, finding(report, "allocator")["text"])
    end
  end

  def test_a_program_whose_name_is_no_text
    program = compile(new_folder, waiting_c)
    File.rename(program, "#{program}\xFF")
    with_program("#{program}\xFF", env: NEUTRAL) do |pid|
      report = examine(pid)
      assert_equal ["#{program}\uFFFD", "glibc"], [report["executable"], report.dig("allocator", "name")]
    end
  end

  def test_a_dormant_child_is_told_from_an_active_one
    child = "pid = spawn('/usr/bin/python3', '-c', 'import sys,time; print(1, flush=True); time.sleep(600)', out: (r, w = IO.pipe; w)); " \
            "r.gets; puts pid; $stdout.flush; sleep"
    { "culet" => [true, "note"], "culet:children=all" => [false, "ok"] }.each do |spec, (dormant, verdict)|
      on(spec, child) do |pid|
        python = File.read("/proc/#{pid}/task/#{pid}/children").split.first
        report = examine(python)
        assert_equal ["culet", dormant], report["allocator"].values_at("name", "dormant"), spec
        assert_equal verdict, finding(report, "allocator")["verdict"]
      end
    end
  end

  def test_versions_are_those_of_the_target
    on("glibc") do |pid|
      report = examine(pid)
      assert_equal "Ruby #{RUBY_VERSION}", finding(report, "ruby")["text"]
      expected, = run_program("getconf", "GNU_LIBC_VERSION")
      assert_equal expected.chomp, finding(report, "glibc")["text"]
    end
    with_program("sh", "-c", "echo up; read x; sleep 600", env: NEUTRAL) do |pid|
      assert_match(/not a Ruby process/, finding(examine(pid), "ruby")["text"])
    end
  end

  def test_whether_memory_goes_back_after_collections_is_told
    with_program(RbConfig.ruby, "-e", WAITING, env: NEUTRAL) do |pid|
      trim = finding(examine(pid), "trim")
      assert_equal "note", trim["verdict"]
      assert_match(/RUBYOPT=-r\$\(culet lib auto\)/, trim["remedy"])
    end
    with_program(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-rculet/auto", "-e", WAITING, env: NEUTRAL) do |pid|
      assert_match(%r{culet/auto returns free memory after major GCs, in a thread}, finding(examine(pid), "trim")["text"])
    end
    on("culet") { |pid| assert_equal "ok", finding(examine(pid), "trim")["verdict"] }
    with_program("sh", "-c", "echo up; sleep 100", env: NEUTRAL) { |pid| refute_includes topics(examine(pid)), "trim" }
  end

  def test_a_setting_of_another_part_is_not_one_of_an_idle_allocator
    env = NEUTRAL.merge("CULET_TRIM" => "now", "CULET_LIMIT" => "1G", "CULET_METRICS" => "9394")
    with_program(RbConfig.ruby, "-e", WAITING, env: env) do |pid|
      refute_includes topics(examine(pid)), "settings"
    end
  end

  def test_a_value_that_is_not_accepted_is_bad
    refused = { "CULET_TRIM" => "fast", "CULET_LIMIT" => "much", "CULET_PROFILE" => "many", "CULET_BLACKBOX_LOOKS" => "x",
                "CULET_HARDEN" => "on", "CULET_CHILDREN" => "some" }
    on("culet", env: refused, err: File::NULL) do |pid|
      bad = examine(pid)["findings"].select { |one| [one["topic"], one["verdict"]] == %w[settings bad] }
      assert_equal refused.keys.sort, bad.map { |one| one["text"][/\ACULET_\w+/] }.sort
    end
    accepted = { "CULET_TRIM" => "now", "CULET_LIMIT" => "85%", "CULET_PROFILE" => "0", "CULET_HARDEN" => "1", "CULET_CHILDREN" => "" }
    on("culet", env: accepted) { |pid| refute_includes topics(examine(pid)), "settings" }
  end

  def test_arenas_of_a_threaded_ruby_are_bad_and_of_a_limited_one_ok
    threads = "8.times { Thread.new { sleep } }; #{WAITING}"
    on("glibc", threads) do |pid|
      arenas = finding(examine(pid), "arenas")
      assert_equal "bad", arenas["verdict"]
      assert_match(/may make \d+ arenas/, arenas["text"])
      assert_match(/MALLOC_ARENA_MAX=2/, arenas["remedy"])
    end
    on("glibc:arena_max=2", threads) do |pid|
      assert_equal ["ok", "glibc is limited to 2 arenas"], finding(examine(pid), "arenas").values_at("verdict", "text")
    end
    # Set to nothing, it is not set.
    with_program(RbConfig.ruby, "-e", threads, env: NEUTRAL.merge("MALLOC_ARENA_MAX" => "")) do |pid|
      assert_match(/may make \d+ arenas/, finding(examine(pid), "arenas")["text"])
    end
    with_program(RbConfig.ruby, "-e", threads, env: NEUTRAL.merge("GLIBC_TUNABLES" => "glibc.malloc.arena_max=3")) do |pid|
      assert_match(/limited to 3 arenas/, finding(examine(pid), "arenas")["text"])
    end
  end

  # They hardly allocate.
  def test_culet_s_own_threads_do_not_count
    env = NEUTRAL.merge("CULET_BLACKBOX" => new_folder)
    with_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/agent", "-rculet/blackbox", "-e", WAITING, env: env) do |pid|
      assert_settles("both have their names") do
        names = Dir["/proc/#{pid}/task/*/comm"].map { |path| File.read(path).chomp }
        (%w[culet-agent culet-blackbox] - names).empty?
      end
      assert_equal "note", finding(examine(pid), "arenas")["verdict"]
    end
  end

  def test_every_topic_has_a_verdict_and_every_bad_one_a_remedy
    report = JSON.parse(run_culet("doctor", "--json", env: NEUTRAL).first)
    ["allocator", "preload", "ruby", "glibc", "arenas", "trim", "page size", "huge pages", "ptrace scope", "overcommit",
     "memory limit", "cpu limit"].each { |topic| assert_includes topics(report), topic }
    report["findings"].each do |one|
      assert_includes %w[ok note bad], one["verdict"]
      assert one["remedy"], one.inspect if one["verdict"] == "bad"
    end
  end

  def test_without_a_pid_it_is_what_a_fresh_ruby_gets_and_nothing_stays_behind
    TestHelper.allocators.each do |name|
      out, = assert_culet_success("run", "--allocator", name, "--", *culet_command, "doctor", "--json", env: NEUTRAL)
      report = JSON.parse(out)
      assert_nil report["pid"]
      assert_equal name, report.dig("allocator", "name")
    end
    # That Ruby has ended when its report is read.
    assert_includes assert_culet_success("doctor", env: NEUTRAL).first, "`culet explain PID` says what it saves"
  end

  def test_the_text_has_a_line_for_each_finding
    out, err = assert_culet_success("doctor", "--no-color", env: NEUTRAL)
    assert_empty err
    assert_match(/^ok +allocator +glibc serves malloc/, out)
    refute_includes out, "\e["
    assert_includes culet("doctor", "--color").first, "\e[32mok"
  end

  def test_what_cannot_be_looked_at_is_one_sentence
    { "" => 2, "0" => 2, "999999999" => 1, "culet-no-such-process" => 1 }.each { |pid, status| assert_sentence(//, "doctor", pid, status: status) }
    assert_equal 2, culet("doctor", "1", "2").last
  end

  def test_a_kernel_thread_is_one_sentence
    kernel = Dir.children("/proc").grep(/\A\d+\z/).find do |pid|
      File.read("/proc/#{pid}/status").match?(/^State:\t[^Z]/) && !File.read("/proc/#{pid}/status").include?("VmSize")
    rescue SystemCallError
      false
    end
    skip "this container shows no kernel threads" unless kernel

    assert_sentence("culet: process #{kernel} is a kernel thread, without memory of its own\n", "doctor", kernel)
  end

  def test_another_users_process_is_one_sentence
    skip "only root can become another user" unless Process.uid.zero?

    with_program(RbConfig.ruby, "-e", WAITING, env: NEUTRAL) do |pid|
      script = "Process::Sys.setgid(65534); Process::Sys.setuid(65534); require 'culet/cli'; exit Culet::CLI.run(['doctor', '#{pid}'])"
      out, err, status = with_readable_library do |lib|
        run_program(RbConfig.ruby, "-I#{lib}", "-e", script, chdir: "/")
      end
      assert_equal [1, ""], [status.exitstatus, out], err
      assert_equal "culet: process #{pid} belongs to root; run culet as that user or as root\n", err
    end
  end

  private

  def on(spec, script = WAITING, env: {}, **streams, &block)
    with_program(*culet_command, "run", "--allocator", spec, "--", RbConfig.ruby, "-e", script, env: NEUTRAL.merge(env), **streams, &block)
  end

  def examine(pid)
    out, err, status = culet("doctor", pid.to_s, "--json")
    report = JSON.parse(out)
    bad = report["findings"].any? { |one| one["verdict"] == "bad" }
    assert_equal bad ? 1 : 0, status, err
    report
  end

  def topics(report) = report["findings"].map { |one| one["topic"] }

  def finding(report, topic) = report["findings"].find { |one| one["topic"] == topic } || flunk("no finding on #{topic}")

  def waiting_c
    "#include <stdio.h>\n#include <unistd.h>\nint main(void) { write(1, \"up\\n\", 3); pause(); return 0; }\n"
  end

  def compile(directory, source, *flags) = compile_c(File.join(directory, "program"), source, *flags)

  # The checkout may lie where another user may not go.
  def with_readable_library
    Dir.mktmpdir do |directory|
      FileUtils.cp_r("#{ROOT}/lib", directory)
      FileUtils.chmod_R("a+rX", directory)
      yield File.join(directory, "lib")
    end
  end
end
