# frozen_string_literal: true

require "test_helper"
require_relative "../roots/contenders"
require_relative "../roots/in_tests"

# The experiment on the Rubies of Debian releases, with few strings. bench/cow/rubies makes it in full.
class CowRubiesTest < Minitest::Test
  include Roots::InTests

  Experiment = Culet::Cow::Experiment

  Roots::RUBIES.each_key do |name|
    define_method("test_rubies_of_#{name}") do
      root = root(name)
      Dir.mktmpdir("culet-cow") do |share|
        contenders = Roots::Contenders.new(root, share).call
        results = measure(contenders)
        assert_equal contenders.map(&:name).sort, results.map { |one| one["contender"] }.sort
        results.each { |result| assert_shared_at_first(result["runs"].first) }
      end
    end
  end

  private

  def measure(contenders)
    plan = Experiment::Plan.new(contenders: contenders, variants: [Experiment::Variant.new("parent", false)], seed: 1, millions: 0.2, runs: 1)
    progress = Experiment::Progress.new(out: StringIO.new, total: 0)
    document = Experiment::Engine.new(plan: plan, interruption: Culet::Interruption.new, progress: progress).call
    assert_empty document["excluded"]
    document["results"]
  end

  # Both start with one memory; collections can only take from what is shared, and both have it all.
  def assert_shared_at_first(run)
    built, forked, = run["phases"].values
    assert_in_delta built["parent"]["pss_bytes"], forked.values.sum { |one| one["pss_bytes"] }, 3_000_000
    assert_operator run["total_pss_bytes"], :>=, run["forked_pss_bytes"]
    assert_operator run["child_shared_bytes"], :>, 4_000_000
  end
end
