# frozen_string_literal: true

require_relative "../test_helper"
require "culet/model/diagnosis"
require "culet/tools/explain"

# Which remedies are listed, and what the user is told to write.
class RankingTest < Minitest::Test
  MEGABYTE = 1_000_000
  Observation = Struct.new(:agent, :profile, keyword_init: true) do
    def total_bytes = 200 * MEGABYTE
    def parts = []
    def processes = []
    def members = []
    def remedies = Culet::Remedies.new([])
    def inflated? = false
    def agent? = agent
  end
  Growth = Struct.new(:leak, :verdict, :rows, keyword_init: true) do
    def leak? = leak
    def per_minute(keeping = nil) = [keeping ? keeping.first.rate : MEGABYTE] * 3
    def process = Struct.new(:pid).new(42)
    def holders = rows.to_a
    def site = nil
    def origin(_row = nil) = nil
    def member(row) = row.member
  end
  Causes = Struct.new(:all, :work, keyword_init: true) do
    def work_origin = nil
  end

  def test_what_a_leak_is_searched_by_is_loaded_first
    assert_equal "RUBYOPT=-r$(culet lib agent) COMMAND", first(leak: true, verdict: :ruby).line
    assert_equal "culet retain 42 --growth", first(leak: true, verdict: :ruby, agent: true).line
    assert_equal "RUBYOPT=-r$(culet lib profile) COMMAND", first(leak: true, verdict: :native, agent: true).line
    assert_equal "culet profile 42 --view growth", first(leak: true, verdict: :native, profile: true).line
    assert_equal "remove it", first(leak: true, verdict: :ruby).undo
  end

  def test_no_saving_is_predicted_of_a_growth_whose_kind_is_not_known
    [{}, { agent: true }, { work: Struct.new(:bytes).new(50 * MEGABYTE) }].each do |facts|
      assert_empty list(leak: true, verdict: :unclear, **facts).select { |one| one.name == "code" }
    end
  end

  def test_each_holder_that_keeps_more_is_to_be_released
    row = Struct.new(:name, :rate, :member) do
      def keeper = self
      def keeps = "constant #{name} keeps"
      def place = "#{name.downcase}.rb:1"
    end
    found = list(leak: true, verdict: :ruby, rows: [row.new("CACHE", 2 * MEGABYTE), row.new("LIST", 3 * MEGABYTE)])
    assert_equal [["LIST", "list.rb:1", 180], ["CACHE", "cache.rb:1", 120]], found.first(2).map { |one| [one.line, one.file, one.saves_bytes / MEGABYTE] }
    assert_match(/\Arelease what constant LIST keeps, which adds this in an hour/, found.first.text)
    found = list(leak: true, verdict: :ruby, rows: [row.new("SERVER", 2 * MEGABYTE, "Prices @by_customer")])
    assert_equal ["Prices @by_customer", "the program"], [found.first.line, found.first.file]
  end

  def test_requests_are_served_by_the_line_that_the_server_takes
    line = lambda do |title|
      setup = Culet::Setup.new(allocator: "glibc", paths: [], environment: nil, names: [title])
      Culet::Remedies.new([setup], forks: true)["requests"]&.to_s
    end
    assert_equal "Culet::Warmup.requests = %w[/] in config/puma.rb", line.call("puma 8.0.2 (tcp://0.0.0.0:3000) [shop]")
    assert_equal "Culet.warmup(requests: %w[/], app: APP) in the code that runs before the fork", line.call("shopd master")
    assert_nil line.call("sidekiq 7.3.0 shop")
  end

  def test_what_peaks_are_made_of_is_searched_by_the_profile
    peak = Struct.new(:bytes).new(50 * MEGABYTE)
    assert_equal "RUBYOPT=-r$(culet lib profile) COMMAND", first(work: peak).line
    assert_equal "culet profile 42 --view peak --for 60s", first(work: peak, profile: true).line
  end

  def test_what_workers_keep_more_and_more_of_was_not_loaded_by_each
    alone = Culet::Diagnosis::Cause.new(name: "sharing", bytes: 30 * MEGABYTE).tap { |one| one.never_shared = true }
    assert_includes list(all: [alone]).map(&:name), "preload"
    refute_includes list(all: [alone], leak: true, verdict: :ruby).map(&:name), "preload"
  end

  def test_a_leak_that_is_gone_has_saved_what_an_hour_would_add
    applied = %w[code allocator].map { |name| { "name" => name, "line" => "$list", "saves_bytes" => 300 * MEGABYTE, "low_bytes" => 0, "high_bytes" => 400 * MEGABYTE } }
    result = { "before_bytes" => 45 * MEGABYTE, "after_bytes" => 43 * MEGABYTE, "saved_bytes" => 2 * MEGABYTE, "applied" => applied }
    sentences = %w[ruby_leak bloat].map { |verdict| Culet::Explain::PredictionCheck.new({ "verdict" => verdict }).sentence(result) }
    assert_match(/: \$list \(predicted 300 MB in an hour, 0 .* to 400 MB\), allocator \(predicted 300 MB, 0 /, sentences.first)
    refute_match(/an hour/, sentences.last)
    larger = { "before_bytes" => 60 * MEGABYTE, "after_bytes" => 70 * MEGABYTE, "saved_bytes" => -10 * MEGABYTE, "applied" => [] }
    assert_match(/\Afrom 60.0 MB to 70.0 MB: 10.0 MB more; nothing/, Culet::Explain::PredictionCheck.new({}).sentence(larger))
  end

  private

  def first(**facts) = list(**facts).first

  def list(agent: false, profile: nil, all: [], work: nil, leak: false, verdict: :none, rows: [])
    Culet::Diagnosis::Ranking.new(Observation.new(agent: agent, profile: profile), causes: Causes.new(all: all, work: work),
                                                                                  growth: Growth.new(leak: leak, verdict: verdict, rows: rows)).list
  end
end
