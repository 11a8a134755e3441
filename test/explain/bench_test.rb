# frozen_string_literal: true

require "test_helper"
require "json"

# bench/explain/run with command lines that give a fixed answer.
class ExplainBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/explain/run")

  def setup = @folder = new_folder

  def test_outcomes
    { "right" => "ruby_leak", "unknown" => "unknown", "wrong" => "bloat" }.each do |outcome, verdict|
      out, status = bench(answer({ "verdict" => verdict, "sentence" => "so it is" }), "--again")
      assert_equal [outcome, verdict, ["ruby_leak"]], record.values_at("outcome", "verdict", "expected")
      assert_equal outcome == "wrong" ? 1 : 0, status.exitstatus
      assert_match(/^ruby_leak +glibc +#{%w[right unknown wrong failed].map { |one| one == outcome ? 1 : 0 }.join(" +")}$/, out)
    end
  end

  def test_a_command_that_fails
    out, status = bench("echo 'culet: it is not there' >&2; exit 1")
    assert_equal ["failed", nil, "culet explain: culet: it is not there"], record.values_at("outcome", "verdict", "problem")
    assert_equal 1, status.exitstatus
    assert_match(/^failed +ruby_leak\S+ +glibc +busy +- +culet explain: culet: it is not there$/, out)
  end

  def test_what_is_named_and_what_is_too_long
    bench(answer({ "verdict" => "ruby_leak", "sentence" => "array_of_rows.rb:10 keeps it", "remedies" => [{ "name" => "x" * 5_000 }] }))
    assert_equal [true, "right"], record.values_at("named", "outcome")
    assert_match(/\Aits document has 5\d\d\d bytes\z/, record["problem"])
  end

  def test_a_trial_is_made_once
    bench(answer({ "verdict" => "ruby_leak" }))
    out, status = bench("exit 1")
    assert_predicate status, :success?
    assert_match(/0 of 1 trials/, out)
    assert_equal 1, File.readlines(records).size
  end

  def test_a_record_that_was_cut
    bench(answer({ "verdict" => "ruby_leak" }))
    File.truncate(records, File.size(records) - 5)
    bench(answer({ "verdict" => "unknown" }))
    assert_equal "unknown", record["verdict"]
    assert_equal 1, File.readlines(records).size
  end

  def test_bad_input
    [["--only", "nothing"], ["a word"], ["--allocators", "x"], ["--for", "0"], ["--load", "much"]].each do |words|
      out, status = bench("exit 0", *words)
      assert_includes [1, 2], status.exitstatus, words.inspect
      assert_match(%r{^bench/explain/run: .+}, out)
    end
    refute File.size?(records)
  end

  def test_predictions_of_a_program_that_ends
    File.write(File.join(@folder, "program.rb"), "abort 'too early'")
    record = trial([RbConfig.ruby, "#{@folder}/program.rb"]).call
    assert_match(/\Athe program ended: .*too early/, record["problem"])
  end

  def test_predictions_that_hit_and_miss
    trial = trial([RbConfig.ruby, "-e", "kept = 'x' * (ENV['SMALL'] ? 1 : 30_000_000); sleep; kept"])
    { 30 => "hit", 34 => "hit", 50 => "miss" }.each do |megabytes, outcome|
      found = trial.send(:compare, { "line" => "SMALL=1", "saves_bytes" => megabytes * 1_000_000 }, trial.send(:level, {}, []))
      assert_equal outcome, found["outcome"], found
    end
    assert_equal "not applied", trial.send(:compare, { "line" => "Culet.warmup", "saves_bytes" => 1 }, 0)["outcome"]
  end

  private

  def trial(command)
    require_relative "../../bench/preamble"
    require_relative "../../bench/explain/prediction_programs"
    require_relative "../../bench/explain/prediction_trial"
    program = PredictionPrograms::Program.new(name: "test", command: command, environment: {}, load: ->(_) {})
    PredictionTrial.new(program, settle: 1, for: 1, remedies: 1, runs: 1)
  end

  def records = File.join(@folder, "records")

  def record = JSON.parse(File.readlines(records).last)

  # @return [String] lines of sh
  def answer(document) = "echo 'culet: watching' >&2\ncat <<'END'\n#{JSON.generate(document)}\nEND\n"

  # @return [Array(String, Process::Status)] all that it printed
  def bench(script, *words)
    culet = File.join(@folder, "culet")
    File.write(culet, "#!/bin/sh\n#{script}\n")
    File.chmod(0o755, culet)
    out, err, status = run_program(RbConfig.ruby, "-w", BENCH, "--only", "ruby_leak/array_of_rows", "--allocators", "glibc", "--for", "1",
                                   "--culet", culet, "--records", records, *words)
    [out + err, status]
  end
end
