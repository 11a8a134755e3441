# frozen_string_literal: true

require "test_helper"
require "json"

# bench/metrics/run with a small cluster.
class MetricsBenchTest < Minitest::Test
  def test_a_scrape_has_its_figures
    folder = new_folder
    words = "--workers 2 --scrapes 2 --megabytes 1 --runs 1 --interval 0.1 --out #{folder}/rows.json"
    assert_success("#{ROOT}/bench/metrics/run", *words.split, env: NEUTRAL)
    rows = JSON.parse(File.read("#{folder}/rows.json")).fetch("results")
    idle = ["CPU time per worker", "duration", "text", "memory at the start", "memory of a scrape"]
    assert_equal({ "idle workers" => idle, "busy workers" => idle.first(3) },
                 rows.group_by { |row| row["subject"] }.transform_values { |list| list.map { |row| row["metric"] } })
    rows.reject { |row| row["unit"] == "MB" }.each { |row| assert_operator row["median"], :>, 0, row["metric"] }
  end
end
