# frozen_string_literal: true

require_relative "verb_helper"

# Whether running programs grow: those with a leak, those without one, and what the profile does not see.
class ProfileGrowthTest < Minitest::Test
  include ProfileVerbHelper

  PROGRAM = File.join(__dir__, "growth_program.rb")
  LEAK = File.readlines(PROGRAM).index { |line| line.end_with?("# LEAK\n") } + 1

  def test_a_leak_comes_before_the_boot
    document = judged("leak", "growth")
    assert_equal "growth", document["growth"]["verdict"], document["growth"].inspect
    first = rows(document).first
    assert_equal ["#{PROGRAM}:#{LEAK}", true, "#{PROGRAM}:#{LEAK}"], first.values_at("name", "grows", "application")
    assert_equal "Programs::Leak::SESSIONS", first.dig("holder", "name"), first["holder"].inspect
    assert_equal([true], rows(document).take_while { |row| row["grows"] }.map { |row| row["grows"] })
  end

  # With all: what is tried by default is the one that is nearest to a leak.
  %w[traffic fill pool garbage rack].each do |name|
    define_method("test_#{name}_is_no_growth") do
      skip_unless_all unless name == "traffic"
      document = judged(name, "none")
      assert_equal ["none", nil], document["growth"].values_at("verdict", "reason"), rows(document).first(3).inspect
      assert_empty(rows(document).select { |row| row["grows"] })
    end
  end

  def test_stacks_are_not_sampled_and_are_named
    document = growth("stacks")
    found = document["growth"]
    levels = found["levels"] or skip "the process cannot be read here: #{@err}"
    assert_equal found["rss_growth_bytes"], levels.values.sum
    assert_operator levels["stacks"], :>, 0.5 * found["rss_growth_bytes"]
    assert_operator found["explained_bytes"], :<, 0.5 * found["rss_growth_bytes"]
    assert_equal %w[unknown unsampled], found.values_at("verdict", "reason") unless found["verdict"] == "growth"
  end

  private

  # On a busy machine the program may stand still for most of a short time, or fill its cache all the while.
  #
  # @return [Hash] of the first of some reports that has the verdict, else of the longest
  def judged(name, verdict)
    document = nil
    %w[6s 15s 40s].find { |seconds| (document = growth(name, seconds))["growth"]["verdict"] == verdict }
    document
  end

  # @return [Hash] of a report by line on a program under load
  def growth(name, seconds = "6s")
    command = [on_culet, RbConfig.ruby, "-I#{LIBRARY}", "-rculet/profile", PROGRAM, name]
    IO.popen(command, err: File::NULL) do |program|
      program.gets
      return profile(program.pid.to_s, "--view", "growth", "--for", seconds, "--collect", "--sample", "4k", "--by", "line")
    ensure
      Process.kill(:KILL, program.pid)
    end
  end
end
