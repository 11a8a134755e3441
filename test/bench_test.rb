# frozen_string_literal: true

require "test_helper"
require "json"

# The benchmarks at their smallest parameters: every probe builds, runs under glibc and culet, and its figures make sense.
class BenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/allocator/run")

  # Built once for all tests.
  BUILT = TestHelper.lasting_folder

  def test_every_probe_under_glibc_and_culet
    folder = new_folder
    out, err, status = bench("--tiny", "--runs", "1", "--allocators", "glibc,culet", "--json", "#{folder}/all.json", "--out", "#{folder}/rows.json")
    assert status.success?, err
    results = JSON.parse(File.read("#{folder}/all.json")).fetch("results")
    assert_equal listed, results.map { |result| result["probe"] }
    results.each { |result| assert_sane(result) }
    rows = JSON.parse(File.read("#{folder}/rows.json")).fetch("results")
    assert_equal listed.product(%w[glibc culet]).sort, rows.map { |row| row.values_at("subject", "contender") }.uniq.sort
    results.each { |result| assert_includes out, "| #{result["probe"]}: " }
  end

  def test_a_goal_is_judged_by_what_was_measured
    folder = new_folder
    _, err, status = bench("classes", "cow-256", "--tiny", "--runs", "1", "--allocators", "glibc,culet",
                           "--json", "#{folder}/some.json")
    assert status.success?, err
    classes, cow = JSON.parse(File.read("#{folder}/some.json")).fetch("results")
    assert_judged(classes, "mean_waste", 0.03)
    assert_judged(cow, "private_dirty_growth_bytes", 512 * 1024)
    # glibc writes into freed blocks, whatever the machine: each page of the child's 1 MiB becomes its own.
    assert_operator figure(cow, "private_dirty_growth_bytes")["medians"]["glibc"], :>, 900_000
  end

  def test_instructions_are_counted
    folder = new_folder
    out, err, status = bench("pair-64", "--instructions", "--allocators", "glibc,culet", "--json", "#{folder}/counts.json")
    assert status.success?, err
    counts = JSON.parse(File.read("#{folder}/counts.json")).dig("instructions_per_operation", "pair-64")
    counts.each { |name, count| assert_includes 20..1_000, count, name }
    assert_match(/^\| pair-64 \|.* (?:\*\*)?#{counts["culet"].round}(?:\*\*)? \|/, out)
  end

  def test_a_ruby_probe_is_not_counted
    _, err, status = bench("startup-ruby", "--instructions", "--allocators", "glibc,culet")
    assert_equal 2, status.exitstatus
    assert_match(/none of these probes can be counted/, err)
  end

  def test_the_fork_probe_tells_a_hang
    hang = compile_c("#{new_folder}/hang.so", <<~C, "-shared", "-fPIC", "-pthread")
      #include <pthread.h>
      #include <unistd.h>
      static void hang(void) { pause(); }
      __attribute__((constructor)) static void begin(void) { pthread_atfork(NULL, NULL, hang); }
    C
    bench("--tiny", "classes", "--runs", "1", "--allocators", "glibc") # builds the probes
    out, = assert_success("#{BUILT}/fork", "forks=3", "threads=1", "patience=1", env: NEUTRAL.merge("LD_PRELOAD" => hang))
    assert_equal [1, 1], JSON.parse(out).fetch("figures").values_at("forks", "hangs")
  end

  def test_a_library_that_is_no_allocator_is_no_contender
    libm = File.readlines("/proc/self/maps").filter_map { |line| line[%r{ (/\S*/libm[.-]\S*)$}, 1] }.first
    skip "this Ruby is not linked with libm" unless libm

    out, err, status = bench("startup-c", "--tiny", "--runs", "1", "--allocators", "math=#{libm},culet")
    assert_equal [2, ""], [status.exitstatus, out]
    assert_match(%r{\Abench/allocator/run: \S*libm\S* does not define malloc; .*\n\z}, err)
  end

  def test_wrong_words
    { ["nonesuch"] => /there is no probe or group nonesuch/, ["--runs", "0"] => /--runs 0; at least 1/,
      ["--allocators", "nonesuch"] => /no allocator "nonesuch"/, ["--nonesuch"] => /nonesuch/ }.each do |words, message|
      out, err, status = bench(*words)
      assert_equal 2, status.exitstatus, words.inspect
      assert_match message, err
      assert_empty out
    end
  end

  def test_a_missing_library_is_named
    _, err, status = bench("classes", "--allocators", "/nonesuch/libx.so")
    assert_equal 2, status.exitstatus
    assert_match(%r{\Abench/allocator/run: cannot read /nonesuch/libx\.so: no such file or directory; .*\n\z}, err)
  end

  private

  def bench(*words) = run_program(RbConfig.ruby, "-w", BENCH, "--build", BUILT, *words, env: NEUTRAL)

  def listed
    out, err, status = bench("--list")
    assert status.success?, err
    out.lines.map { |line| line[/\S+/] }
  end

  def assert_sane(result)
    name = result.fetch("probe")
    assert_nil result["skipped"], name
    assert_empty result["excluded"], name
    refute_empty result["figures"], name
    result["figures"].each do |figure|
      next if figure["key"] == "kernel_milliseconds_per_100mb" # only where the trim found something to return

      figure["medians"].each { |allocator, value| assert_kind_of Numeric, value, "#{name}, #{allocator}, #{figure["key"]}" }
      assert(figure["medians"].values.all? { |value| value.finite? && !value.negative? }, "#{name} #{figure}")
    end
    result["runs"].each_value { |runs| assert_equal 1, runs.size, name }
  end

  def assert_judged(result, key, limit)
    one = figure(result, key)
    assert_equal one["medians"]["culet"] <= limit, one["culet"]["culet"]["reached"], one.inspect
  end

  def figure(result, key) = result.fetch("figures").find { |one| one["key"] == key }
end
