# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require_relative "sampled"
require "culet/system/interruption"
require "culet/benchmark/progress"
require "stringio"

# Whole comparisons with programs of a fraction of a second.
class CompareRunnerTest < Minitest::Test
  Compare = Culet::Compare
  Allocators = Culet::Allocators

  GROWING = "x = Array.new(3_000) { 'x' * 2_000 }; #{Sampled::STOP}".freeze

  def test_document_has_every_run_of_every_candidate
    document = compare(ruby(GROWING), allocators: %w[glibc jemalloc tcmalloc], runs: 2)
    assert document["complete"]
    assert_empty document["excluded"]
    assert_equal %w[glibc jemalloc tcmalloc], document["results"].map { |result| result["allocator"] }
    document["results"].each { |result| check_result(result) }
    assert_equal (1..6).to_a, document["results"].flat_map { |result| result["runs"].map { |run| run["order"] } }.sort
  end

  def test_comparisons_are_with_the_baseline
    document = compare(ruby(GROWING), allocators: %w[jemalloc glibc], runs: 4, baseline: "glibc")
    metrics = document["comparisons"].map { |one| one["metric"] }
    assert_equal Culet::Benchmark::Document::COMPARED, metrics
    document["comparisons"].each do |one|
      assert_equal %w[jemalloc glibc], one.values_at("allocator", "baseline")
      assert_equal 4, one["runs"]
      assert_includes ["smaller", "larger", "no difference shown"], one["verdict"]
    end
  end

  def test_a_difference_of_programs_is_found_and_likeness_is_not_called_one
    script = "x = 'a' * ((ENV['MALLOC_ARENA_MAX'] ? 40 : 10) << 20); #{Sampled::STOP}"
    document = compare(ruby(script), allocators: %w[glibc glibc:arena_max=2 glibc:tcache_count=7], runs: 5)
    verdicts = document["comparisons"].select { |one| one["metric"] == "peak_rss_bytes" }.to_h { |one| [one["allocator"], one["verdict"]] }
    assert_equal "larger", verdicts["glibc:arena_max=2"]
    assert_equal "no difference shown", verdicts["glibc:tcache_count=7"]
  end

  def test_crash_and_failure_exclude_with_the_reason
    script = "case ENV['MALLOC_ARENA_MAX'] when '1' then Process.kill(:SEGV, $$); sleep; when '2' then abort('no luck'); else #{Sampled::STOP}; end"
    document = compare(ruby(script), allocators: %w[glibc glibc:arena_max=1 glibc:arena_max=2], runs: 2)
    assert_equal ["glibc"], document["results"].map { |result| result["allocator"] }
    reasons = document["excluded"].to_h { |entry| [entry["allocator"], entry["reason"]] }
    assert_match(/was killed by SIG(ABRT|SEGV): .*\[BUG\]/, reasons["glibc:arena_max=1"])
    assert_equal "it exited with status 1: no luck", reasons["glibc:arena_max=2"]
    assert_equal [1, 1], document["excluded"].map { |entry| entry["run"] }
    assert_empty document["comparisons"]
  end

  def test_a_hang_excludes_with_the_reason
    document = compare(ruby("fork { sleep }; sleep"), allocators: %w[glibc], runs: 2, timeout: 1.0)
    assert_empty document["results"]
    assert_equal [["it did not end within 1.0 seconds", 1]], document["excluded"].map { |entry| entry.values_at("reason", "run") }
  end

  def test_a_candidate_that_fails_later_loses_its_earlier_runs
    directory = new_folder
    script = "File.exist?(ARGV[0]) ? abort('second time') : (File.write(ARGV[0], ''); #{Sampled::STOP})"
    document = compare(ruby(script, File.join(directory, "mark")), allocators: %w[glibc], runs: 3)
    assert_empty document["results"]
    assert_equal [["glibc", 2]], document["excluded"].map { |entry| entry.values_at("allocator", "run") }
  end

  def test_an_absent_allocator_is_named_with_its_package
    definition = Allocators.definitions.find { |one| one.name == "jemalloc" }.dup
    definition.patterns = [/\Alibthere_is_no_such_allocator\.so\z/]
    absent = Allocators::Choice.new(definition: definition, settings: {})
    document = compare(ruby(GROWING), choices: [Allocators.parse("glibc"), absent], runs: 1)
    entry, = document["excluded"]
    assert_equal "jemalloc", entry["allocator"]
    assert_equal "jemalloc is not installed", entry["reason"]
    assert_match(/libjemalloc2/, entry["remedy"])
    assert_nil entry["run"]
    assert_equal ["glibc"], document["results"].map { |result| result["allocator"] }
  end

  def test_a_preload_that_does_not_take_is_noticed
    choice = Allocators.parse("jemalloc")
    command = ["/bin/sh", "-c", "unset LD_PRELOAD; exec \"$@\"", "sh", *ruby("$stdout.sync = true; puts 'ready'; gets")]
    IO.popen({ "LD_PRELOAD" => choice.library }, command, "r+") do |program|
      assert_equal "ready\n", program.gets
      check = Culet::Benchmark::PreloadCheck.new(choice)
      check.examine([program.pid])
      assert_match(/jemalloc was not loaded/, check.failure(program.pid))
      program.puts
    end
  end

  # The memory of a process whose main thread has ended cannot be read: two thirds of its time.
  UNREADABLE = <<~RUBY.freeze
    require "fiddle"
    clocks = -> { [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map { |clock| Process.clock_gettime(clock) } }
    began = [Float(ARGV[0]), 0]
    #{Sampled::STOP}
    Thread.new do
      nil until File.read("/proc/self/stat").include?(") Z ")
      read = clocks.call
      nil until clocks.call.zip(read, began).all? { |now, last, first| now - last > 2 * (last - first) }
      exit!(0)
    end
    number = RUBY_PLATFORM.include?("aarch64") ? 93 : 60
    Fiddle::Function.new(Fiddle::Handle::DEFAULT["syscall"], [Fiddle::TYPE_LONG] * 2, Fiddle::TYPE_LONG).call(number, 0)
  RUBY

  def test_a_program_that_could_not_be_observed_has_no_result
    document = compare(ruby(UNREADABLE, Culet::Clock.now.to_s), allocators: %w[glibc], runs: 1)
    assert_match(/\Ano sample was taken in the last \d+\.\d\d of its \d+\.\d\d seconds\z/, document["excluded"].first["reason"])
    assert_empty document["results"]
  end

  def test_a_program_whose_end_is_noticed_late_was_observed
    late = Class.new(Culet::Benchmark::Child) { def wall_seconds = super + 60 }
    Culet::Benchmark::Child.stub(:new, ->(**options) { late.allocate.tap { |child| child.send(:initialize, **options) } }) do
      document = compare(ruby(Sampled::STOP), allocators: %w[glibc], runs: 1)
      assert_empty document["excluded"]
      assert_operator document["results"].first["runs"].first["wall_seconds"], :>, 60
    end
  end

  # One string in fifty is kept. glibc has 57 to 86 MB before the trim, by the number of arenas, and some 25 after it.
  def test_a_candidate_that_trims_ends_smaller
    script = "fill = -> { Array.new(20_000) { 'x' * 1_000 }.each_slice(50).map(&:first) }; keep = Array.new(4) { Thread.new(&fill).value }; " \
             "2.times { GC.start }; resident = -> { File.read('/proc/self/status')[/VmRSS:\\s+(\\d+)/, 1].to_i }; " \
             "600.times { resident.call > 35_000 ? sleep(0.1) : break } if defined?(Culet.trim_stats); " \
             "#{Sampled::STOP}; sleep 0.25; #{Sampled::STOP}; keep" # between the two, the time of which the end is the median
    document = compare([RbConfig.ruby, "-e", script], allocators: %w[glibc glibc:trim glibc:trim=now], runs: 1)
    assert_empty document["excluded"]
    untrimmed, background, now = document["results"].map { |result| result["runs"].first["end_rss_bytes"] }
    [background, now].each { |bytes| assert_operator bytes, :<, untrimmed * 0.7 }
    assert_match(%r{-rculet/auto\z}, document["allocators"][1]["environment"]["RUBYOPT"])
    assert_equal "now", document["allocators"][2]["environment"]["CULET_TRIM"]
  end

  def test_a_trim_that_does_not_take_is_no_result
    document = compare(["sh", "-c", "kill -STOP $$"], allocators: %w[glibc glibc:trim], runs: 1)
    assert_equal ["glibc"], document["results"].map { |result| result["allocator"] }
    assert_match(%r{it did not load culet/auto although RUBYOPT requires it}, document["excluded"].first["reason"])
  end

  def test_the_callers_own_trims_do_not_reach_candidates
    before = ENV.to_h
    ENV.update("RUBYOPT" => "-I#{ROOT}/lib -rculet/auto", "CULET_TRIM" => "now,minimum=1K")
    script = "abort unless ENV['CULET_TRIM'] == ARGV[0] && !Culet.trim_stats[:active]; #{Sampled::STOP}"
    assert_empty compare([RbConfig.ruby, "-e", script, "off"], allocators: %w[glibc], runs: 1)["excluded"]
  ensure
    ENV.replace(before)
  end

  def test_an_allocator_that_the_program_brings_is_not_glibc
    library = Allocators.parse("jemalloc").library
    document = compare(["/bin/sh", "-c", "LD_PRELOAD='#{library}' exec #{RbConfig.ruby} --disable-gems -e '#{Sampled::STOP}'"],
                       allocators: %w[glibc jemalloc], runs: 1)
    assert_equal ["jemalloc"], document["results"].map { |result| result["allocator"] }
    assert_match(/uses jemalloc/, document["excluded"].first["reason"])
  end

  def test_settings_in_the_callers_environment_do_not_reach_candidates
    script = "abort(ENV.to_h.inspect) if ENV['MALLOC_ARENA_MAX'] || ENV['MALLOC_CONF']; #{Sampled::STOP}"
    before = ENV.to_h
    ENV.update("MALLOC_ARENA_MAX" => "1", "MALLOC_CONF" => "narenas:1", "LD_PRELOAD" => "")
    assert_equal 2, compare(ruby(script), allocators: %w[glibc jemalloc], runs: 1)["results"].size
  ensure
    ENV.replace(before)
  end

  # Those of other parts of culet belong to the program.
  def test_settings_of_the_callers_culet_do_not_reach_candidates
    settings = { "CULET_CHILDREN" => "all", "CULET_DECAY" => "10", "CULET_HARDEN" => "3", "CULET_PROFILE" => "1",
                 "CULET_PROFILE_OUT" => "#{new_folder}/%p", "CULET_PROFILE_EVERY" => "1" }
    before = ENV.to_h
    ENV.update(settings.merge("CULET_BLACKBOX_LOOKS" => "300"))
    seen = new_folder
    code = "File.write('#{seen}/' + ENV['CULET_HARDEN'].to_s + '-' + File.basename(ENV['LD_PRELOAD'].to_s), ENV.keys.grep(/\\ACULET_/).sort.join(' ')); #{Sampled::STOP}"
    assert_empty compare(ruby(code), allocators: %w[glibc culet culet:harden=1], runs: 1)["excluded"]
    found = Dir.children(seen).sort.to_h { |name| [name, File.read("#{seen}/#{name}").split - %w[CULET_COMPARE_RUN CULET_INHERITED]] }
    assert_equal({ "-" => %w[CULET_BLACKBOX_LOOKS], "-libculet.so" => %w[CULET_BLACKBOX_LOOKS],
                   "1-libculet.so" => %w[CULET_BLACKBOX_LOOKS CULET_HARDEN] }, found)
  ensure
    ENV.replace(before)
  end

  def test_progress_is_one_line_per_run
    compare(ruby(GROWING), allocators: %w[glibc jemalloc], runs: 2)
    lines = @progress.string.lines
    assert_equal 4, lines.size
    assert_match(%r{\Aculet: \[1/4\] .*, run 1: peak [\d.]+ MB, [\d.]+ s\n\z}, lines.first)
  end

  private

  def compare(command, runs:, allocators: [], choices: allocators.map { |spec| Allocators.parse(spec) }, baseline: nil, timeout: 60.0)
    plan = Culet::Benchmark::Plan.new(workloads: [Compare::Workload.command(command)], choices: choices, runs: runs, seed: 1,
                                      baseline: baseline || choices.first.spec, timeout_seconds: timeout)
    @progress = StringIO.new
    progress = Culet::Benchmark::Progress.new(out: @progress, total: plan.schedule.size)
    Compare::Runner.new(plan: plan, interruption: Culet::Interruption.new, progress: progress).call
  end

  def ruby(script, *arguments) = [RbConfig.ruby, "--disable-gems", "-e", script, *arguments]

  def check_result(result)
    assert_equal [1, 2], result["runs"].map { |run| run["run"] }
    result["runs"].each do |run|
      assert_operator run["peak_rss_bytes"], :>=, run["mean_rss_bytes"]
      assert_operator run["wall_seconds"], :>, run["samples"].last["at_seconds"] - 0.001
      assert_operator run["cpu_seconds"], :>, 0
      assert_operator run["samples"].size, :>=, 2
      assert_kind_of Integer, run["peak_pss_bytes"]
    end
    summary = result["summary"]["peak_rss_bytes"]
    assert_equal %w[median low high], summary.keys
    assert_includes summary["low"]..summary["high"], summary["median"]
  end
end
