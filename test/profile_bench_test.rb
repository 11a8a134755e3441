# frozen_string_literal: true

require "test_helper"
require "json"

# bench/profile/run with little work: every contender has its figures, and the profile is on where the name says so.
class ProfileBenchTest < Minitest::Test
  BENCH = File.join(ROOT, "bench/profile/run")
  RUBY_CONTENDERS = ["off", "loaded, off", "512k", "64k"].freeze

  def setup = @folder = new_folder

  def test_programs_are_measured_under_each_contender
    out, rows = measured("programs", "--scale", "0.02")
    assert_equal %w[cpu threads].product(["CPU time", "peak RSS"], RUBY_CONTENDERS).sort,
                 rows.map { |row| row.values_at("subject", "metric", "contender") }.sort
    assert(rows.all? { |row| row["median"].positive? && row["runs"] == 1 })
    assert_match(/^\| CPU time, s \| off \| loaded, off \| 512k \| 64k \|$/, out)
    # The extension takes memory.
    off, loaded = ["off", "loaded, off"].map { |name| rows.find { |row| row.values_at("subject", "metric", "contender") == ["cpu", "peak RSS", name] }["median"] }
    assert_operator loaded, :>, off
  end

  def test_samples_of_two_stacks
    skip_unless_all
    _, rows = measured("samples", "--strings", "2000", "--runs", "1")
    assert_equal ["Ruby stack, 20 deep", "Ruby stack, 80 deep"], rows.map { |row| row["subject"] }
    assert(rows.all? { |row| row["median"].positive? && row["unit"] == "µs" })
  end

  def test_loops_are_counted
    skip_unless_all
    skip "no valgrind" unless system("valgrind --version", %i[out err] => File::NULL)

    _, rows = measured("probes", "--operations", "20000")
    assert_equal %w[pair-64 pair-mixed replace-small].product(%w[off 512k 64k]).sort,
                 rows.map { |row| row.values_at("subject", "contender") }.sort
    counted = rows.to_h { |row| [row.values_at("subject", "contender"), row["median"]] }
    # Some 10 MB of blocks: one sample in 20 or 160, whose instructions show.
    assert_operator counted[%w[replace-small 64k]], :>, counted[%w[replace-small off]]
    assert_includes 30..400, counted[%w[pair-64 off]]
  end

  def test_wrong_words
    { ["nonesuch"] => /there is no part nonesuch/, ["--runs", "0"] => /--runs 0; at least 1/ }.each do |words, message|
      out, err, status = run_program(RbConfig.ruby, "-w", BENCH, *words, env: NEUTRAL)
      assert_equal [2, ""], [status.exitstatus, out], words.inspect
      assert_match message, err
    end
  end

  private

  # @return [Array(String, Array<Hash>)] what it prints, and the results it writes
  def measured(*words)
    path = File.join(@folder, "rows.json")
    words += ["--runs", "1"] unless words.include?("--runs")
    out, = assert_success(RbConfig.ruby, "-w", BENCH, *words, "--build", File.join(@folder, "built"), "--out", path, env: NEUTRAL)
    [out, JSON.parse(File.read(path)).fetch("results")]
  end
end
