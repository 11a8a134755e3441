# frozen_string_literal: true

require "test_helper"
require "json"
require "yaml"

# bench/standard/run: programs in Ruby, a checkout of ruby-bench, and a command that goes on where it was cut.
class StandardRubyBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/standard/run")
  # Adds a byte to a file. At the fourth run it kills the benchmark, which is the parent of its parent, and waits for
  # its own end.
  COUNTING = <<~C
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    int main(void) {
      FILE *counts = fopen(getenv("COUNTS"), "a");
      char path[64];
      int parent;
      free(malloc(1));
      fputc('.', counts);
      fflush(counts);
      if (ftell(counts) == 4) {
        snprintf(path, sizeof path, "/proc/%d/stat", getppid());
        if (fscanf(fopen(path, "r"), "%*d %*s %*c %d", &parent) == 1 && parent > 1) kill(parent, SIGKILL);
        for (;;) pause();
      }
      return 0;
    }
  C
  REDMINE = <<~RUBY
    Issue = Struct.new(:id) do
      def self.minimum(_name) = 1
      def self.maximum(_name) = 9
    end
    Project = Struct.new(:id) do
      def self.count = 4
      def self.exists?(**) = true
    end
    module ActiveRecord
      module Base
        def self.connection_db_config = Struct.new(:configuration_hash).new({})
        def self.establish_connection(options) = options.fetch(:pool) == 6 || abort("a pool of \#{options[:pool]}")
      end
    end
    module Rack
      module MockRequest
        def self.env_for(path) = { "PATH_INFO" => path }
      end
    end
    module Rails
      PAGES = Queue.new
      def self.application = ->(environment) { PAGES << environment["PATH_INFO"] and [200, {}, ["page"]] }
    end
    at_exit { File.write("pages", "\#{Rails::PAGES.size}\\n", mode: "a") unless PREPARES }
  RUBY

  def setup
    @folder = new_folder
    @out = "#{@folder}/out.json"
  end

  def test_goes_on_where_it_was_killed
    file "checkout/bench/cfrac/cfrac.c", COUNTING
    counts = "#{@folder}/counts"
    _, _, status = bench("cfrac", "--runs", "3", "--out", @out, env: { "COUNTS" => counts, "TMPDIR" => @folder })
    assert_equal [9, 4], [status.termsig, File.size(counts)]
    assert_equal 4, File.readlines("#{@out}.part").size
    File.write("#{@out}.part", '{"program":"cfrac","contender":"gl', mode: "a")
    refute_path_exists @out

    _, err, status = bench("cfrac", "--runs", "3", "--out", @out, env: { "COUNTS" => counts })
    assert status.success?, err
    assert_includes err, "goes on after 3 runs of #{@out}.part"
    assert_equal 7, File.size(counts) # the one that was cut is the fourth and once more
    assert_equal [3] * 6, rows.map { |row| row["runs"] }
    assert(rows.all? { |row| row["median"].between?(row["low"], row["high"]) })
    refute_path_exists "#{@out}.part"
  end

  def test_runs_of_other_allocators_are_not_mixed
    file "out.json.part", %({"ruby":"another","allocators":{}}\n)
    out, err, status = bench("json", "--out", @out)
    assert_equal [1, ""], [status.exitstatus, out]
    assert_equal "bench/standard/run: #{@out}.part has runs of other allocators or on another Ruby; repeat that command, or " \
                 "remove the file to start anew\n", err
  end

  def test_a_file_that_is_no_record
    file "out.json.part", "{\n"
    _, err, status = bench("json", "--out", @out)
    assert_equal 1, status.exitstatus
    assert_equal "bench/standard/run: #{@out}.part is no record of runs; remove it, or name another file\n", err
    assert_equal "{\n", File.read("#{@out}.part")
  end

  def test_two_at_once
    File.open("#{@out}.part", "w") do |held|
      held.flock(File::LOCK_EX)
      _, err, status = bench("json", "--out", @out)
      assert_equal [1, "bench/standard/run: another run writes #{@out}.part\n"], [status.exitstatus, err]
    end
  end

  def test_results_are_added_to_those_of_other_programs
    file "checkout/bench/cfrac/cfrac.c", "#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }\n"
    run = { "STANDARD_ITERATIONS" => "1" }
    [["sh6bench", "cfrac", "--runs", "1"], ["json", "psych", "--runs", "1"], ["json", "cfrac", "--runs", "2"]].each do |words|
      _, err, status = bench(*words, "--out", @out, "--add", env: run)
      assert status.success?, err
    end
    one, ruby = [@out, "#{@folder}/out-ruby.json"].map { |path| JSON.parse(File.read(path)) }
    assert_equal [["cfrac", 2]], one["results"].map { |row| row.values_at("subject", "runs") }.uniq
    assert_equal [["json", 2], ["psych", 1]], ruby["results"].map { |row| row.values_at("subject", "runs") }.uniq
    assert_equal [6, 12], [one, ruby].map { |document| document["results"].size }
    assert_equal(["sh6bench was not run"], one["remarks"].map { |remark| remark[/[^:]+/] })
    assert_equal ["json psych --runs 1", "json cfrac --runs 2"], ruby["command"].map { |command| command[/glibc,culet (.*)/, 1] }
  end

  def test_results_of_other_allocators_or_machines_are_not_added_to
    file "out-ruby.json", JSON.generate("title" => "t", "command" => "c", "date" => "d", "environment" => { "cores" => 0 },
                                        "remarks" => [], "results" => [])
    _, err, status = bench("json", "--out", @out, "--add")
    assert_equal 1, status.exitstatus
    assert_equal "bench/standard/run: #{@folder}/out-ruby.json has results of other allocators or of another machine; name its " \
                 "allocators, or write another file\n", err
    refute_path_exists "#{@out}.part"
    assert_equal 2, bench("json", "--add").last.exitstatus
  end

  def test_programs_in_ruby_have_a_file_of_their_own
    out, err, status = bench("json", "psych", "--runs", "1", "--out", @out, env: { "STANDARD_ITERATIONS" => "1" })
    assert status.success?, err
    refute_path_exists @out
    document = JSON.parse(File.read("#{@folder}/out-ruby.json"))
    assert_equal "Standard programs in Ruby", document["title"]
    assert_empty document["remarks"]
    assert_equal %w[json psych].product(["time", "CPU time", "peak RSS"], %w[glibc culet]).sort,
                 document["results"].map { |row| row.values_at("subject", "metric", "contender") }.sort
    assert_includes out, "| json |"
  end

  def test_without_redmine
    out, err, status = bench("redmine", "--runs", "1", env: { "STANDARD_REDMINE" => "#{@folder}/nonesuch" })
    assert status.success?, err
    assert_includes out, "- redmine was not run: it cannot be prepared: it ended with status 1: Debian's packages redmine and " \
                         "redmine-sqlite are not installed."
  end

  # A Redmine that counts its pages; five threads ask for 20 each.
  def test_pages_of_a_redmine
    file "redmine/config/environment.rb", REDMINE
    out, err, status = bench("redmine", "--runs", "1", env: { "STANDARD_REDMINE" => "#{@folder}/redmine" })
    assert status.success?, err
    assert_match(/^\| redmine \|/, out)
    refute_includes out, "redmine was not run"
    assert_equal ["100"] * 2, File.readlines("#{@folder}/redmine/pages", chomp: true)
  end

  def test_a_checkout_of_ruby_bench
    file "suite/benchmarks.yml", YAML.dump("one" => { "desc" => "the first", "category" => "headline" },
                                           "two" => { "desc" => "the second" }, "fib" => { "desc" => "small", "category" => "micro" })
    file "suite/harness/loader.rb", "require 'harness'\n"
    file "suite/benchmarks/one/benchmark.rb", <<~RUBY
      require_relative "../../harness/loader"
      Dir.chdir(__dir__)
      setup_cmds(["echo prepared >> steps"])
      make_shareable("text".dup)
      run_benchmark(500) { File.write("steps", "run\n", mode: "a") }
    RUBY
    file "suite/benchmarks/two.rb", "require_relative '../harness/loader'\nsetup_cmds(['exit 3'])\nrun_benchmark(1) { }\n"
    file "suite/benchmarks/fib.rb", "raise\n"
    out, err, status = bench("ruby-bench", "--ruby-bench", "#{@folder}/suite", "--runs", "2")
    assert status.success?, err
    assert_equal %w[prepared] + (%w[run] * 40), File.readlines("#{@folder}/suite/benchmarks/one/steps", chomp: true)
    assert_includes out, "| ruby-bench/one |"
    assert_match(%r{^- ruby-bench/two was not run: it cannot be prepared: it ended with status 1: `exit 3` failed in }, out)
    refute_includes out, "fib"
  end

  def test_without_ruby_bench
    out, err, status = bench("--ruby-bench", "#{@folder}/nonesuch")
    assert_equal [1, ""], [status.exitstatus, out]
    assert_equal "bench/standard/run: there is no ruby-bench in #{@folder}/nonesuch: it has no benchmarks.yml\n", err
    _, err, status = bench("ruby-bench/mail")
    assert_equal 2, status.exitstatus
    assert_match(%r{there is no program ruby-bench/mail}, err)
  end

  def test_every_program_in_ruby_is_listed
    out, err, status = bench("--list")
    assert status.success?, err
    names = Dir.children(File.join(ROOT, "bench/standard/ruby")).grep(/\.rb\z/).map { |name| name.delete_suffix(".rb") }
    assert_operator names.size, :>, 10
    assert_empty names - out.lines.map { |line| line[/\S+/] }
  end

  private

  def file(path, text)
    path = File.join(@folder, path)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end

  def rows = JSON.parse(File.read(@out)).fetch("results")

  def bench(*words, env: {})
    run_program(RbConfig.ruby, "-w", BENCH, "--sources", "#{@folder}/checkout", "--build", "#{@folder}/built",
                "--allocators", "glibc,culet", *words, env: NEUTRAL.merge(env))
  end
end
