# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/allocators"
require_relative "sampled"

class CompareCliTest < Minitest::Test
  QUICK = ["--allocators", "glibc,jemalloc", "--runs", "2", "--seed", "4"].freeze

  def test_help_names_the_default_workloads
    out, = culet("compare", "--help")
    assert_match(/threads, window, fragments, hash/, out)
    assert_match(/^ +trim=now/, out)
    assert_match(/^Examples:/, out)
  end

  def test_list
    out, = culet("compare", "--list")
    assert_equal %w[threads window fragments mixed hash garbage cpu fork boot rack rails cluster cluster-warm], out.lines.map { |line| line[/\S+/] }
    json, = culet("compare", "--list", "--json")
    assert_equal true, JSON.parse(json)["workloads"].find { |one| one["name"] == "rack" }["server"]
  end

  def test_json_document
    out, = assert_success(*sampling_culet, "compare", "hash", "--scale", "0.02", "--json", *QUICK, env: Sampled::AT_THE_END)
    document = JSON.parse(out)
    assert_equal %w[allocators comparisons complete culet environment excluded results], document.keys.sort
    check_environment(document["environment"])
    assert_equal ["glibc", nil], document["allocators"].first.values_at("name", "library")
    assert_match(/libjemalloc/, document["allocators"].last["environment"]["LD_PRELOAD"])
    run = document["results"].first["runs"].first
    sample = run["samples"].first
    assert_kind_of Float, sample["at_seconds"]
    assert_kind_of Integer, sample["rss_bytes"]
    assert_empty %w[peak_rss_bytes mean_rss_bytes end_rss_bytes cpu_seconds wall_seconds samples] - run.keys
    assert_operator run["samples"].last["at_seconds"], :>, run["wall_seconds"], "the rest after the work is sampled, and not counted"
  end

  # Two builds of one allocator, one of them at a place and under a name of the user's own.
  def test_libraries_by_their_paths
    directory = new_folder
    copy = File.join(File.realpath(directory), "libfast.so")
    page = File.join(directory, "report.html")
    FileUtils.cp(Culet::Allocators.parse("jemalloc").library, copy)
    out, = assert_success(*sampling_culet, "compare", "--allocators", "jemalloc,#{copy},#{copy}:trim", "--runs", "1", "--json", "--html", page,
                          "--", RbConfig.ruby, "-e", "GC.start; #{Sampled::STOP}")
    document = JSON.parse(out)
    assert_equal [], document["excluded"]
    assert_equal ["jemalloc", copy, "#{copy}:trim"], document["results"].map { |result| result["allocator"] }
    assert_equal [Culet::Allocators.parse("jemalloc").version], document["allocators"].map { |one| one["version"] }.uniq
    assert_equal [copy], document["allocators"].drop(1).map { |one| one["library"] }.uniq
    assert_includes File.read(page), "<code>#{copy}</code>"
  end

  def test_table_and_html
    directory = new_folder
    html = File.join(directory, "report.html")
    out, err = assert_success(*sampling_culet, "compare", *QUICK, "--html", html, "--", RbConfig.ruby, "-e", Sampled::STOP)
    assert_match(/^glibc .*baseline/, out)
    assert_match(/^jemalloc /, out)
    assert_match(/<html/i, File.read(html))
    assert_equal %w[report.html], Dir.children(directory)
    assert_match(/wrote #{Regexp.escape(html)}/, err)
  end

  def test_wrong_usage_exits_2_with_one_sentence
    { %w[nothing] => /unknown workload "nothing"/, %w[threads --runs 0] => /--runs takes a whole number/,
      %w[threads --runs five] => /--runs takes/, %w[threads --timeout -1] => /--timeout takes a number above 0/,
      %w[threads --timeout nan] => /--timeout/, %w[threads --allocators nope] => /no allocator "nope"/,
      %w[threads --allocators ,] => /names no allocator/, %w[threads --baseline tcmalloc --allocators glibc] => /is not among/,
      %w[threads -- true] => /not both/, %w[--] => /no command after --/, %w[--url http://127.0.0.1:1/] => /goes after --/,
      %w[--url http://example.org/ -- true] => /must be an address of this machine/, %w[--frobnicate] => /invalid option/,
      %w[threads --seed x] => /--seed/ }.each do |words, message|
      assert_sentence(message, "compare", *words, status: 2)
    end
  end

  def test_a_destination_that_cannot_be_written_is_refused_before_measuring
    directory = new_folder
    [File.join(directory, "none/report.html"), directory].each do |path|
      assert_sentence(path, "compare", "--html", path, "--", "sleep", "60")
    end
  end

  def test_a_command_that_does_not_exist
    assert_sentence("culet: cannot run culet-has-no-such-program: no such program\n", "compare", "--", "culet-has-no-such-program", status: 127)
  end

  def test_a_ruby_that_is_none
    assert_sentence("/nonexistent/ruby", "compare", "hash", "--ruby", "/nonexistent/ruby", *QUICK)
  end

  # The kernel cuts the name of a longer one after fifteen bytes, perhaps in a character.
  def test_a_program_whose_name_is_no_text
    source = "#include <unistd.h>\nint main(void) { return usleep(300000); }"
    program = compile_c(File.join(new_folder, "program"), source)
    File.rename(program, "#{program}\xFF")
    out, err = assert_culet_success("compare", *QUICK, "--json", "--", "#{program}\xFF")
    refute_match(/Error/, err)
    assert_equal %w[glibc jemalloc], JSON.parse(out)["results"].map { |one| one["allocator"] }
  end

  def test_nothing_completed_exits_1_and_says_why
    out, err, status = run_culet("compare", *QUICK, "--", RbConfig.ruby, "-e", "abort 'no luck'")
    assert_equal 1, status.exitstatus
    assert_match(/no luck/, out)
    assert_match(/no allocator completed a run/, err.lines.last)
  end

  def test_interrupted_reports_what_is_complete_and_leaves_nothing
    %w[INT TERM].each do |signal|
      Dir.mktmpdir do |directory|
        out, err, status, pids = interrupted(directory, signal)
        assert_equal 128 + Signal.list.fetch(signal), status.exitstatus, err
        assert_match(/interrupted by SIG#{signal}/, err.lines.last)
        document = JSON.parse(out)
        refute document["complete"]
        assert_equal [1], document["results"].flat_map { |result| result["runs"].map { |run| run["run"] } }
        assert_equal 2, pids.size
        pids.each { |pid| refute File.exist?("/proc/#{pid}/exe") && running?(pid), "process #{pid} is left" }
      end
    end
  end

  def test_the_default_baseline_is_the_first_contender
    out, = assert_success(*sampling_culet, "compare", "hash", "--scale", "0.01", "--runs", "1", "--allocators", "jemalloc,glibc", "--json", env: Sampled::AT_THE_END)
    assert_equal ["jemalloc"], JSON.parse(out)["comparisons"].map { |one| one["baseline"] }.uniq
  end

  private

  def sampling_culet = Sampled.command(culet_command)

  # The first run is complete at once; the second starts a child in another session and then hangs.
  def interrupted(directory, signal)
    before = trap(signal, "DEFAULT") # culet goes on ignoring what it was started to ignore, as the tests may have been
    script = "mark, note = ARGV; (File.write(mark, ''); #{Sampled::STOP}; exit) unless File.exist?(mark); " \
             "reader, writer = IO.pipe; pid = fork { Process.setsid; writer.puts; sleep }; reader.gets; " \
             "File.write(note + '.new', [$$, pid].join(' ')); File.rename(note + '.new', note); sleep"
    note = File.join(directory, "pids")
    Open3.popen3(*sampling_culet, "compare", "--allocators", "glibc", "--runs", "3", "--timeout", "600", "--json", "--", RbConfig.ruby, "--disable-gems",
                 "-e", script, File.join(directory, "mark"), note, pgroup: true) do |input, output, error, process|
      input.close
      readers = [output, error].map { |io| Thread.new { io.read } }
      assert_settles("the second run is under way") { File.exist?(note) }
      Process.kill(signal, process.pid)
      assert process.join(PATIENCE_SECONDS), "culet did not end"
      [*readers.map(&:value), process.value, File.read(note).split.map(&:to_i)]
    end
  ensure
    trap(signal, before || "DEFAULT")
  end

  def running?(pid) = File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] != "Z"

  def check_environment(environment)
    %w[ruby kernel glibc cpu started_at command].each { |key| assert_kind_of String, environment[key], key }
    %w[cores memory_bytes page_size_bytes seed runs].each { |key| assert_kind_of Integer, environment[key], key }
    assert_equal [4, 2], environment.values_at("seed", "runs")
    assert_match(/\Aculet compare hash .*--seed 4/, environment["command"])
    assert_operator environment["memory_bytes"], :>, 1 << 28
  end
end
