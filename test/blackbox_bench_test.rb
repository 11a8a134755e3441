# frozen_string_literal: true

require "test_helper"
require "json"

# bench/blackbox/run with little work.
class BlackBoxBenchTest < Minitest::Test
  include TestHelper

  BENCH = File.join(ROOT, "bench/blackbox/run")

  def test_each_program_with_and_without
    folder = new_folder
    path = File.join(folder, "rows.json")
    assert_success(RbConfig.ruby, "-w", BENCH, "--runs", "1", "--seconds", "1", "--requests", "2000", "--out", path, env: NEUTRAL)
    rows = JSON.parse(File.read(path)).fetch("results")
    assert_equal ["idle", "busy, profile on", "requests"].product(["without", "black box"]),
                 rows.select { |row| row["metric"] == "CPU time" }.map { |row| row.values_at("subject", "contender") }
    with = rows.select { |row| row["contender"] == "black box" && row["metric"] == "CPU time" }
    assert(with.all? { |row| row["median"].positive? })
  end

  def test_wrong_words
    out, err, status = run_program(RbConfig.ruby, "-w", BENCH, "part", env: NEUTRAL)
    assert_equal [2, ""], [status.exitstatus, out]
    assert_match(/needless argument/, err)
  end
end
