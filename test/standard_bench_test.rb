# frozen_string_literal: true

require "test_helper"
require "json"

# bench/standard/run on a checkout of small programs of our own, which have the names of the collection's.
class StandardBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/standard/run")
  # Fills 24 MiB.
  FILL = <<~C
    #include <stdlib.h>
    #include <string.h>
    int main(void) {
      char *volatile block = malloc(24 << 20);
      if (!block) return 1;
      memset((char *)block, 1, 24 << 20);
      return block[123456] != 1;
    }
  C
  # Ends by abort() where culet is preloaded.
  ABORT = <<~C
    #include <stdlib.h>
    #include <string.h>
    int main(void) {
      const char *preload = getenv("LD_PRELOAD");
      free(malloc(1));
      if (preload && strstr(preload, "libculet")) abort();
    }
  C
  # Works for half a second of CPU time and prints a rate.
  LARSON = <<~C
    #include <cstdio>
    #include <ctime>
    #include <new>
    int main() {
      while (clock() < CLOCKS_PER_SEC / 2) delete new int;
      printf("Throughput = %8.0f operations per second, relative time: 1.0s.\\n", 25e6);
    }
  C
  COUNTING = "#include <cstdio>\n#include <cstdlib>\nint main() { long iterCount = 100000000; free(malloc(1)); return iterCount != 40000000; }\n"

  def setup = @folder = new_folder

  def test_time_cpu_and_memory_under_each_allocator
    source "cfrac/cfrac.c", FILL
    source "cfrac/pfactor.c", "no C: not a part of the program\n"
    out, rows = measured("cfrac")
    assert_equal %w[glibc culet].product(["time", "CPU time", "peak RSS"]).sort, rows.map { |row| row.values_at("contender", "metric") }.sort
    assert(rows.all? { |row| row["subject"] == "cfrac" && row["median"].positive? && row["runs"] == 1 })
    # The Ruby that started them is larger than that.
    %w[glibc culet].each { |name| assert_includes 24.0..32.0, figure(rows, "peak RSS", name), name }
    ["time, s", "CPU time, s", "peak RSS, MiB"].each { |heading| assert_includes out, "\n| #{heading} | glibc | culet | culet to the best other |" }
  end

  def test_a_program_that_runs_for_a_fixed_time_is_judged_by_its_rate
    source "larson/larson.cpp", LARSON
    _, rows = measured("larson")
    %w[glibc culet].each do |name|
      assert_in_delta 4.0, figure(rows, "time", name) # 100 million operations
      assert_in_delta 0.5 * 4.0 / 2, figure(rows, "CPU time", name), 0.2
    end
  end

  def test_a_crash_is_reported
    source "cfrac/cfrac.c", ABORT
    out, rows, remarks = measured("cfrac")
    assert_equal ["glibc"], rows.map { |row| row["contender"] }.uniq
    assert_equal ["cfrac, culet: no result, it ended with signal ABRT."], remarks
    assert_includes out, "- #{remarks.first}"
  end

  def test_what_cannot_be_built_is_reported_and_the_others_run
    source "cfrac/cfrac.c", "int main(void) { return nonesuch; }\n"
    source "larson/larson.cpp", LARSON
    _, rows, remarks = measured("cfrac", "larson", "sh6bench")
    assert_equal ["larson"], rows.map { |row| row["subject"] }.uniq
    assert_match(/\Acfrac was not run: it cannot be built: .*nonesuch/, remarks[0])
    assert_equal "sh6bench was not run: bench/shbench/sh6bench-new.c is missing; " \
                 "bench/shbench/readme.md there says where it is to be had.", remarks[1]
  end

  def test_a_shorter_run_where_the_source_has_a_constant
    source "alloc-test/test.cpp", COUNTING
    _, rows, remarks = measured("alloc-test-1")
    assert_equal [6, []], [rows.size, remarks]
    source "alloc-test/test.cpp", COUNTING.sub("100000000", "99")
    _, rows, remarks = measured("alloc-test-1")
    assert_empty rows
    assert_match(/\Aalloc-test-1 was not run: its sources have no iterCount = 100000000/, remarks.first)
  end

  def test_a_server_and_its_client
    program "redis-server", ': > "$4"; while [ -e "$4" ]; do sleep 0.05; done'
    program "redis-cli", '[ -e "$2" ] || exit 1; if [ "$3" = shutdown ]; then rm "$2"; fi'
    program "redis-benchmark", "echo 'lpush: 4000000.00 requests per second'"
    sources
    _, rows, remarks = measured("redis", env: { "PATH" => "#{@folder}/bin:#{ENV.fetch("PATH")}" })
    assert_empty remarks
    %w[glibc culet].each { |name| assert_in_delta 0.5, figure(rows, "time", name) }
    program "redis-benchmark", "echo 'it is gone' >&2; exit 1"
    _, rows, remarks = measured("redis", env: { "PATH" => "#{@folder}/bin:#{ENV.fetch("PATH")}" })
    assert_empty rows
    assert_equal "redis, glibc: no result, the client failed: it ended with status 1: it is gone.", remarks.first
  end

  def test_what_is_not_installed_is_reported
    sources
    _, _, remarks = measured("redis", env: { "PATH" => path_without("redis-server") })
    assert_equal 1, remarks.size
    assert_match(/\Aredis was not run: redis-server.* not installed\.\z/, remarks.first)
  end

  def test_without_a_checkout
    out, err, status = run_program(RbConfig.ruby, BENCH, "--sources", "#{@folder}/nonesuch", "--allocators", "glibc", env: NEUTRAL)
    assert_equal [1, ""], [status.exitstatus, out]
    assert_equal "bench/standard/run: there is no mimalloc-bench in #{@folder}/nonesuch; get it by `git clone " \
                 "https://github.com/daanx/mimalloc-bench #{@folder}/nonesuch`, or name your checkout by --sources DIR\n", err
  end

  def test_wrong_words
    { ["nonesuch"] => /there is no program nonesuch/, ["--runs", "0"] => /--runs 0; at least 1/,
      ["--allocators", "nonesuch"] => /no allocator "nonesuch"/ }.each do |words, message|
      _, err, status = bench(*words)
      assert_equal 2, status.exitstatus, words.inspect
      assert_match message, err
    end
  end

  def test_every_program_is_listed
    out, err, status = bench("--list")
    assert status.success?, err
    assert_operator out.lines.size, :>, 15
    assert_includes out, "xmalloc-test "
  end

  private

  def sources = FileUtils.mkdir_p("#{@folder}/checkout/bench")

  def source(path, text)
    file = File.join(sources.first, path)
    FileUtils.mkdir_p(File.dirname(file))
    File.write(file, text)
  end

  def program(name, text)
    FileUtils.mkdir_p("#{@folder}/bin")
    File.write("#{@folder}/bin/#{name}", "#!/bin/sh\n#{text}\n")
    File.chmod(0o755, "#{@folder}/bin/#{name}")
  end

  # The folders of PATH as links to their programs, but for one.
  def path_without(name)
    links = "#{@folder}/links"
    FileUtils.mkdir_p(links)
    ENV.fetch("PATH").split(":").each do |folder|
      Dir.glob("#{folder}/*").each do |file|
        link = "#{links}/#{File.basename(file)}"
        File.symlink(file, link) unless File.basename(file) == name || File.symlink?(link)
      end
    end
    links
  end

  # @return [Array(String, Array<Hash>, Array<String>)] what it prints, rows and remarks of its file
  def measured(*names, env: {})
    file = "#{@folder}/out.json"
    out, err, status = bench(*names, "--runs", "1", "--allocators", "glibc,culet", "--out", file, env: env)
    assert status.success?, err
    document = JSON.parse(File.read(file))
    [out, *document.values_at("results", "remarks")]
  end

  def bench(*words, env: {})
    run_program(RbConfig.ruby, "-w", BENCH, "--sources", "#{@folder}/checkout", "--build", "#{@folder}/built", *words, env: NEUTRAL.merge(env))
  end

  def figure(rows, metric, contender)
    rows.find { |row| row.values_at("metric", "contender") == [metric, contender] }.fetch("median")
  end
end
