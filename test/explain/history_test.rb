# frozen_string_literal: true

require "json"
require_relative "../autopsy/box_helper"
require_relative "../live/live_helper"
require "culet/model/sampler"

# What `culet explain` takes from a recording of `culet live`, and from black boxes.
class ExplainHistoryTest < Minitest::Test
  include BoxHelper
  include LiveHelper

  MEGABYTE = 1_000_000
  STEADY = "puts :up; $stdout.flush; sleep"
  # Too slowly for a watch of a second.
  GROWING = <<~RUBY
    $stdout.sync = true
    puts :up
    kept = []
    loop { sleep 1; kept << ("k" * 1_000_000) }
  RUBY

  def test_a_recording_of_hours_shows_what_the_watch_does_not
    with_recording(->(at) { 20 + at }) do |pid, file|
      found = explain(pid, "--for", "1s", "--history", file)
      assert_equal "unknown", found["verdict"], found
      assert_match(/\Acannot tell yet: .* all the time/, found["sentence"])
    end
  end

  def test_a_recording_without_growth_changes_nothing
    with_recording(->(at) { 20 + (at % 7) }) do |pid, file|
      assert_equal "none", explain(pid, "--for", "1s", "--history", file)["verdict"]
    end
  end

  def test_a_recording_of_another_process_does_not_count
    with_recording(->(at) { 20 + at }, later: 5) do |pid, file|
      refute_match(/ all the time/, explain(pid, "--for", "1s", "--history", file)["sentence"])
    end
  end

  # Its path may not lead to it: here it was removed, and in a container it is another one.
  def test_a_black_box_shows_what_was_before_the_watch
    words = [RbConfig.ruby, "-I#{LIBRARY}", "-rculet/auto", "-e", GROWING]
    with_program(*words, env: TestHelper::NEUTRAL.merge("CULET_BLACKBOX" => @folder)) do |pid|
      assert_settles("14 readings") { boxes.any? && box.readings.size >= 14 }
      File.delete(*boxes)
      found = explain(pid, "--for", "1s")
      assert_equal "unknown", found["verdict"], found
      assert_match(/ all the time/, found["sentence"])
    end
  end

  def test_what_is_no_recording_is_refused_at_once
    Dir.mktmpdir do |folder|
      File.write("#{folder}/a.live", "no\n")
      assert_sentence(/is not a recording; `culet live --record FILE` makes one/, "explain", "1", "--history", "#{folder}/a.live")
      assert_sentence(/there is no file|no such/i, "explain", "1", "--history", "#{folder}/b.live")
    end
  end

  def test_a_damaged_recording_is_refused_before_the_watch
    with_recording(->(at) { 20 + at }) do |pid, file|
      lines = File.readlines(file)
      File.write(file, [*lines.first(60), "no\n", *lines.drop(60)].join)
      assert_sentence(/line 61 is not a line of a recording/, "explain", pid, "--history", file)
    end
  end

  private

  # Yields a program, and a recording of it that has two hours.
  #
  # @param megabytes [#call] its memory in use at each minute
  # @param later [Integer] ticks by which the recorded process began later
  def with_recording(megabytes, later: 0)
    with_program(RbConfig.ruby, "-e", STEADY, env: TestHelper::NEUTRAL) do |pid|
      sampler = Culet::Live::Sampler.new([pid])
      moment = sampler.call
      sampler.close
      Dir.mktmpdir do |folder|
        write("#{folder}/app.live", Array.new(120) { |at| changed(moment, at, later, megabytes.call(at)) })
        yield pid, "#{folder}/app.live"
      end
    end
  end

  # The moment as it would have been some minutes before.
  def changed(moment, at, later, megabytes)
    one = moment["processes"].first
    levels = { "levels" => { "ruby_objects" => MEGABYTE, "malloc_used" => megabytes * MEGABYTE } }
    process = one.merge("start_ticks" => one["start_ticks"] + later, "figures" => levels)
    moment.merge("at" => moment["at"] - (60 * (120 - at)), "processes" => [process], "events" => [])
  end

  def write(path, moments)
    recorder = Culet::Live::Recorder.new(path, subject: "ruby", every_seconds: 60.0)
    frames(moments).each { |frame| recorder.add(frame) }
    recorder.close
  end

  def explain(pid, *words) = JSON.parse(assert_culet("explain", pid, "--json", *words).first)
end
