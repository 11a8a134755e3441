# frozen_string_literal: true

require "trim/trim_helper"
require "culet/runtime/trim/settings"

# CULET_TRIM.
class TrimSettingsTest < Minitest::Test
  include TrimHelper

  DEFAULTS = ["background", 1 << 20, nil].freeze

  def test_nothing_is_the_defaults
    [nil, "", " ", ","].each { |text| assert_equal [*DEFAULTS, []], read(text), text.inspect }
  end

  def test_all_words
    assert_equal ["off", 1 << 20, nil, []], read("off")
    assert_equal ["now", 512 << 10, 2.5, []], read("now,minimum=512K,interval=2.5")
    assert_equal ["background", 3 << 30, 0.0, []], read(" interval=0 , minimum=3GiB ,background")
    assert_equal ["background", 70_000, 86_400.0, []], read("minimum=70000,interval=86400")
    assert_equal ["background", 4_000_000, nil, []], read("minimum=4mb")
    assert_equal ["background", 0, nil, []], read("minimum=0")
  end

  def test_what_is_not_understood_is_said_and_the_default_stands
    ["of", "Background", "minimum", "minimum=", "minimum=-1", "minimum=1X", "minimum=9999999999999999999", "interval=", "interval=-1",
     "interval=x", "interval=NaN", "interval=Infinity", "interval=86401", "interval=1s", "a=b=c", "\xFF\xFE"].each do |word|
      mode, minimum, interval, problems = read(word)
      assert_equal DEFAULTS, [mode, minimum, interval], word
      assert_equal 1, problems.size, word
      assert_match(/\ACULET_TRIM: /, problems.first)
    end
    assert_equal ["now", 2 << 20, nil], read("nonsense,now,interval=,minimum=2M").first(3)
  end

  def test_a_program_starts_whatever_it_says
    out, err = assert_success(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-rculet/auto", "-e", "p Culet.trim_stats[:mode]",
                              env: TestHelper::NEUTRAL.merge("CULET_TRIM" => "sometimes,minimum=lots"))
    assert_equal "\"background\"\n", out
    assert_equal ["culet: CULET_TRIM: 'sometimes' is not one of off, background, now, minimum=SIZE and interval=SECONDS",
                  "culet: CULET_TRIM: minimum=lots is not a size such as 512K or 4M; it stays 1M"], err.lines(chomp: true)
  end

  def test_a_value_with_control_characters_is_one_line
    _, err = assert_success(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-rculet/auto", "-e", "exit",
                            env: TestHelper::NEUTRAL.merge("CULET_TRIM" => "a\e[2J\nb"))
    assert_match(/\Aculet: CULET_TRIM: 'a \[2J b' is not one of [^\n]+\n\z/, err)
  end

  def test_off_is_off
    told, = run_trimmed("litter(20); GC.start; sleep 0.5; tell([Culet.trim_stats, own_threads, Culet.trim])", setting: "off")
    stats, threads, bytes = told
    assert_equal [0, 0, false, "off", false, 0], [*stats.values_at(:trims, :requested, :active, :mode, :thread), threads]
    assert_operator bytes, :>, 10_000_000 # at will all the same
  end

  # Nothing but the extension and the settings.
  def test_it_loads_little
    out, = run_program(RbConfig.ruby, "--disable-gems", "-w", "-I#{TestHelper::ROOT}/lib", "-e",
                       "b = $LOADED_FEATURES.dup; require 'culet/auto'; puts $LOADED_FEATURES - b",
                       env: TestHelper::NEUTRAL)
    assert_equal %w[auto.rb culet.rb culet.so errors.rb native.rb numbers.rb rails_hook.rb settings.rb size.rb version.rb], out.lines(chomp: true).map { |path| File.basename(path) }.sort
  end

  private

  def read(text)
    settings = Culet::Trim::Settings.new(text)
    [settings.mode, settings.minimum_bytes, settings.interval_seconds, settings.problems]
  end
end
