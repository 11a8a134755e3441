# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../bench/preamble"
require_relative "../bench/allocator/bench"

# The benchmarks at their smallest parameters: every probe builds, runs under glibc and culet, and its figures make sense.
class BenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/allocator/run")

  # Built once for all tests.
  BUILT = TestHelper.lasting_folder

  def test_every_probe_under_glibc_and_culet
    out, rows = measured("--tiny", "--runs", "1")
    refute_match(/^- /, out, "nothing is missing")
    figures = AllocatorBench::Catalogue.probes.flat_map { |probe| probe.figures.map { |figure| [probe.name, figure.label] } }
    rare = "what one madvise over the returned bytes needs" # only where the trim found something to return
    assert_equal figures.product(%w[glibc culet]).map(&:flatten).reject { |row| row.include?(rare) }.sort,
                 rows.map { |row| row.values_at("subject", "metric", "contender") }.reject { |row| row.include?(rare) }.sort
    rows.each do |row|
      assert row["median"].finite? && !row["median"].negative?, row.inspect
      assert_equal 1, row["runs"], row.inspect
    end
  end

  # glibc writes into freed blocks, whatever the machine: each page of the child's 1 MiB becomes its own.
  def test_a_child_of_glibc_unshares_each_page
    _, rows = measured("cow-256", "--tiny", "--runs", "1")
    assert_operator rows.find { |row| row["contender"] == "glibc" }["median"], :>, 0.85
  end

  def test_instructions_are_counted
    out, rows = measured("pair-64", "--instructions")
    assert_equal %w[glibc culet], rows.map { |row| row["contender"] }
    rows.each { |row| assert_includes 20..1_000, row["median"], row.inspect }
    assert_match(/^\| pair-64 \|.* (?:\*\*)?#{rows.last["median"]}(?:\*\*)? \|/, out)
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

  # @return [Array(String, Array<Hash>)] what it prints, and the rows of its file
  def measured(*words)
    file = File.join(new_folder, "rows.json")
    out, err, status = bench(*words, "--allocators", "glibc,culet", "--out", file)
    assert status.success?, err
    [out, JSON.parse(File.read(file)).fetch("results")]
  end
end
