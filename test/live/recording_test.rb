# frozen_string_literal: true

require_relative "live_helper"

# Recordings: what comes back, and what is refused.
class LiveRecordingTest < Minitest::Test
  include LiveHelper

  def test_what_was_recorded_is_played
    with_recording(moments(90), subject: "puma <b>") do |path|
      recording = Recording.new(path)
      assert_equal ["puma <b>", 1.0], [recording.subject, recording.every_seconds]
      found = recording.history.after(0, 0)
      assert_equal states(frames(moments(90))), states(found)
      assert_equal(["exit"], found.flat_map { |frame| JSON.parse(frame.text).fetch("events", []) }.map { |one| one["kind"] })
      assert_empty recording.notes
      assert_equal 0o600, File.stat(path).mode & 0o777
    end
  end

  def test_a_long_recording_is_thinned_and_keeps_its_events_and_its_end
    all = moments(251).tap { |list| list.last["events"] << event(250, 11, "exit") }
    with_recording(all) do |path|
      recording = Recording.new(path, most_moments: 100)
      found = recording.history.after(0, 0)
      expected = states(frames(all))
      assert_equal [*expected.each_slice(3).map(&:first), expected.last], states(found)
      assert_equal(2, found.sum { |frame| JSON.parse(frame.text).fetch("events", []).size })
      assert_equal ["one of 3 moments is shown"], recording.notes
    end
  end

  def test_names_that_are_not_text
    with_recording(moments(3), subject: "puma <b>") do |path|
      File.binwrite(path, File.binread(path).sub("puma <b>", "pum\xFF <b>".b))
      assert_equal "pum? <b>", Recording.new(path).subject
      refute_empty Recording.new(path).history.after(0, 0)
    end
  end

  # A recorder may be killed at any byte.
  def test_a_recording_that_was_cut_is_played_up_to_there
    with_recording(moments(4)) do |path|
      text = File.binread(path)
      head = text.lines.first(2).join.bytesize
      cuts = (head...text.bytesize).to_a
      cuts.sample(60, random: Random.new(3)).each do |bytes|
        File.binwrite(path, text.byteslice(0, bytes))
        recording = Recording.new(path)
        whole = text.byteslice(0, bytes).count("\n") - 1
        assert_equal whole, recording.history.after(0, 0).size
        assert_equal text.getbyte(bytes - 1) == 10, recording.notes.empty?
      end
    end
  end

  def test_a_file_that_is_no_recording_is_refused
    refuted = { "" => /is not a recording/, "{}\n" => /is not a recording/, "[1]\n" => /is not a recording/, "\xFF\xFE\n" => /is not a recording/,
                "x" * 9_000_000 => /is damaged: line 1 is too long/, "{\"culet_live\":2}\n" => /has version 2 of the format/,
                "{\"culet_live\":1,\"subject\":3,\"every_seconds\":1}\n" => /is damaged: subject is not text/ }
    refuted.each { |text, sentence| assert_refused(text, sentence) }
  end

  def test_damaged_lines_are_refused
    with_recording(moments(3)) do |path|
      lines = File.read(path).lines
      [["nonsense\n", /line 3 is not a line of a recording/], ["{\"n\":2}\n", /line 3 of .* is damaged: it has no moment/], ["7\n", /it has no moment/],
       ["#{"[" * 200}#{"]" * 200}\n", /line 3 is not a line/], [lines[2].sub(/"at":[\d.]+/, '"at":1'), /its time is before/],
       [lines[2].sub(/"at":[\d.]+/, '"at":1e300'), /at is not a time/], [lines[2].sub(/"at":[\d.]+/, '"at":1e12'), /after the year 9999/],
       ["{\"n\":2,\"patch\":{\"order\":[\"1-1\"]}}\n", /the order is not that of its processes/],
       ["{\"n\":2,\"patch\":{\"processes\":{\"10-1010\":{\"pss_bytes\":\"many\"}}}}\n", /pss_bytes is not a whole number/],
       ["{\"n\":2,\"patch\":{},\"events\":[{\"at\":\"<b>\"}]}\n", /events?.* is not|at is not a time/]].each do |line, sentence|
        assert_refused([lines[0], lines[1], line, lines[3]].join, sentence)
      end
      assert_refused([lines[0], lines[2], lines[3]].join, /line 2 of .* is damaged: it has no moment/)
      assert_refused(lines[0], /has no moment yet/)
    end
  end

  def test_a_file_that_exists_is_not_written_to
    with_recording(moments(2)) do |path|
      before = File.binread(path)
      error = assert_raises(Culet::Error) { record(path, moments(2)) }
      assert_match(/there is a file .* already; choose another name/, error.message)
      assert_equal before, File.binread(path)
      assert_raises(Culet::Error) { record("#{path}/x", moments(1)) }
    end
  end

  private

  def with_recording(moments, **options)
    Dir.mktmpdir do |folder|
      path = "#{folder}/a.live"
      record(path, moments, **options)
      yield path
    end
  end

  def assert_refused(text, sentence)
    Dir.mktmpdir do |folder|
      path = "#{folder}/a.live"
      File.binwrite(path, text)
      error = assert_raises(Culet::Error) { Recording.new(path).history }
      assert_match sentence, error.message
      refute_includes error.message, "\n"
      assert_operator error.message.size, :<, 400
    end
  end
end
