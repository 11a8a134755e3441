# frozen_string_literal: true

require_relative "../trace/trace_helper"

# `culet replay`: allocators side by side.
class ReplayVerbTest < Minitest::Test
  include TraceHelper

  JOB = FIXTURES.grep(/json/).first

  {
    [] => /no trace given/, %w[a b] => /no trace given/, ["a", "--", "ls"] => /does not run a command/, ["a", "--runs", "0"] => /--runs takes a whole number/
  }.each do |words, message|
    define_method(:"test_wrong_usage_#{words.join("_")}") do
      assert_sentence(message, "replay", *words, status: 2)
    end
  end

  {
    ["--threads", "2"] => /--threads takes 1/, ["--touch", "softly"] => /invalid argument: --touch softly/,
    ["--allocators", "nosuch"] => /no allocator "nosuch"/, ["--allocators", "glibc,culet:trim"] => /a replay has no Ruby/,
    ["--baseline", "jemalloc", "--allocators", "glibc"] => /is not among/,
    ["--list", "--json"] => /--list prints plain lines/
  }.each do |words, message|
    define_method(:"test_wrong_option_#{words.join("_")}") do
      assert_sentence(message, "replay", JOB, *words, status: 2)
    end
  end

  def test_a_trace_of_more_memory_than_there_is
    skip "this machine promises no more memory than it has" if File.read("/proc/sys/vm/overcommit_memory").to_i == 2
    record(compile("for (int i = 0; i < 4096; i++) if (!malloc((size_t)1 << 32)) return 3"))
    out, err, status = run_culet("replay", path, "--allocators", "glibc", "--runs", "1")
    assert_equal [1, "", 1], [status.exitstatus, out, err.lines.size], err
    assert_match(/\Aculet: #{path} has 1[67]\.\d+ TB in use at its peak, and .* of memory are available; replay it on a larger machine, or with --touch none$/, err)
    assert_culet_success("replay", path, "--allocators", "glibc", "--runs", "1", "--touch", "none")
  end

  def test_it_says_which_of_several_programs_it_took
    second = compile("if (!fork()) { free(malloc(1003)); _exit(0); } wait(NULL); free(malloc(1005));", name: "second")
    record(compile("malloc(1001); execl(argv[1], argv[1], \"--port\", NULL);"), second)
    out, = assert_culet_success("replay", path, "--runs", "1", "--allocators", "glibc", env: NEUTRAL)
    assert_includes out, "t.trace: #{second} --port"
    assert_includes out.gsub(/\s+/, " "), "The process executed 2 programs, one after the other: replayed is the last one."
    assert_includes out.gsub(/\s+/, " "), "1 other process of the recording not replayed: #{files.last}."
    facts = JSON.parse(culet("replay", path, "--info", "--json").first)
    assert_equal [2, [path(files.last)]], facts.values_at("programs", "other_traces")
  end

  def test_a_document_like_that_of_a_comparison
    out, = assert_culet_success("replay", JOB, "--json", "--runs", "2",
                                "--allocators", "glibc,culet,glibc:arena_max=1", "--seed", "7", env: NEUTRAL)
    document = JSON.parse(out)
    assert_equal %w[glibc culet glibc:arena_max=1], document["results"].map { |result| result["allocator"] }
    document["results"].each do |result|
      assert_equal [1, 2], result["runs"].map { |run| run["run"] }
      result["runs"].each do |run|
        assert_operator run["peak_rss_bytes"], :>=, run["mean_rss_bytes"]
        assert_equal run["peak_rss_bytes"], run["samples"].map { |sample| sample["rss_bytes"] }.max
        assert_operator run["cpu_seconds"], :>, 0
        assert run.key?("instructions")
      end
      assert_equal %w[median low high], result["summary"]["peak_rss_bytes"].keys
    end
    assert_equal info(JOB), document["trace"].slice(*info(JOB).keys)
    assert_equal "ruby", document["trace"]["command"].first
    assert_equal [7, "line", false], document["environment"].values_at("seed", "touch", "paced")
    assert_equal ["glibc"], document["comparisons"].map { |one| one["baseline"] }.uniq
  end

  def test_a_command_that_is_not_text
    damaged = File.join(Dir.mktmpdir("culet-names"), "job.trace")
    File.binwrite(damaged, File.binread(JOB).sub("--disable-gems", "--disable-g\xFFms".b))
    out, = assert_culet_success("replay", damaged, "--json", "--runs", "1", "--allocators", "glibc", env: NEUTRAL)
    assert_includes JSON.parse(out).dig("trace", "command"), "--disable-g?ms"
  ensure
    FileUtils.rm_rf(File.dirname(damaged))
  end

  def test_a_table
    out, err = assert_culet_success("replay", JOB, "--runs", "1", "--allocators", "glibc,culet", env: NEUTRAL)
    assert_match(/^ruby-json\.trace: ruby --disable-gems/, out)
    assert_match(%r{^allocator +peak resident MB +/ requested +mean MB +CPU ms}, out)
    assert_match(/^glibc +\d\.\d\d +1\.\d\d +\d\.\d\d/, out)
    assert_match(/^culet +\d\.\d\d +1\.\d\d/, out)
    assert_equal out.lines.map(&:rstrip), out.lines.map(&:chomp)
    assert_operator out.lines.map { |line| line.chomp.length }.max, :<=, 100
    assert_equal 2, err.lines.grep(/run 1: peak/).size
  end

  # So few runs show no difference whatever they are: that is said, not only "no difference shown".
  def test_runs_that_are_too_few
    words = ["replay", JOB, "--allocators", "glibc,culet", "--out", path("report"), "--runs"]
    { "3" => /^3 runs of each are too few to show a difference, which takes at least 4 \(--runs\)\.$/,
      "1" => /^A single run of each is too few/ }.each do |runs, sentence|
      assert_culet_success(*words, runs, env: NEUTRAL)
      assert_match sentence, File.read(path("report"))
    end
    run_culet(*words, "4", env: NEUTRAL)
    refute_match(/too few/, File.read(path("report")))
    assert_match(/at least 4 to show a\s+difference/, culet("replay", "--help").first)
  end

  def test_a_report_in_a_file
    out, = assert_culet_success("replay", JOB, "--runs", "1", "--allocators", "glibc", "--out", path("report"), env: NEUTRAL)
    assert_empty out
    assert_match(/^glibc /, File.read(path("report")))
  end

  def test_an_allocator_that_is_not_there_is_left_out_with_its_reason
    skip "rpmalloc is installed" if Culet::Allocators.parse("rpmalloc").available?

    out, = assert_culet_success("replay", JOB, "--runs", "1", "--allocators", "glibc,rpmalloc", env: NEUTRAL)
    assert_match(/^excluded: rpmalloc: rpmalloc is not installed\. Install the Debian package/, out)

    out, err, status = run_culet("replay", JOB, "--runs", "1", "--allocators", "rpmalloc", env: NEUTRAL)
    assert_equal 1, status.exitstatus
    assert_match(/no allocator completed the trace/, err)
    assert_match(/excluded/, out)
  end

  def test_what_is_in_a_trace
    out, err, status = culet("replay", JOB, "--info", "--json")
    assert_equal 0, status, err
    facts = JSON.parse(out)
    assert_equal info(JOB)["operations"], facts["operations"]
    assert_equal JOB, facts["file"]
    out, = culet("replay", JOB, "--info")
    assert_match(/^operations +#{facts["operations"]}$/, out)
    assert_match(/^command +ruby --disable-gems -rjson -e /, out)
  end

  def test_its_operations_line_by_line
    out, err, status = culet("replay", JOB, "--list")
    assert_equal 0, status, err
    assert_equal info(JOB)["operations"], out.lines.size
    assert_match(/\A0 0 (malloc|calloc|aligned) 0 \d+$/, out)
  end
end
