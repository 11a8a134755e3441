# frozen_string_literal: true

require_relative "live_helper"

# Frames: what they leave out, and what is kept of them.
class LiveHistoryTest < Minitest::Test
  include LiveHelper

  def test_a_patch_makes_the_later_document
    random = Random.new(7)
    value = lambda do |depth|
      next random.rand(3) if depth.zero? || random.rand < 0.4

      random.rand < 0.3 ? [random.rand(2), nil] : Array.new(random.rand(4)) { %w[a b c d].sample(random: random) }.to_h { |key| [key, value.call(depth - 1)] }
    end
    500.times do
      before, after = Array.new(2) { { "x" => value.call(3), "y" => value.call(3) } }
      patch = JSON.parse(JSON.generate(MergePatch.diff(before, after)))
      kept = Marshal.load(Marshal.dump(before))
      assert_equal after, MergePatch.apply(before, patch)
      assert_equal kept, before
      assert_empty MergePatch.diff(after, after)
    end
  end

  def test_frames_are_the_moments
    all = moments(130)
    found = frames(all)
    assert_equal((1..130).to_a, found.map(&:number))
    assert_equal([1, 61, 121], found.select(&:full).map(&:number))
    expected = all.map { |one| JSON.parse(JSON.generate(State.of(one))) }
    assert_equal expected, states(found)
    refute_includes JSON.generate(expected), "null"
    assert_operator found[1].text.bytesize, :<, found[0].text.bytesize / 4
  end

  def test_old_frames_are_dropped_by_groups
    history = history(frames(moments(200)), most_frames: 100)
    kept = history.after(0, 0)
    assert_equal [121, true], [kept.first.number, kept.first.full]
    assert_equal 200, kept.last.number
    bytes = frames(moments(200)).sum { |frame| frame.text.bytesize }
    assert_equal 181, history(frames(moments(200)), most_bytes: bytes / 8).after(0, 0).first.number
  end

  def test_a_reader_gets_what_it_lacks
    history = history(frames(moments(100)), most_frames: 50)
    assert_equal [99, 100], history.after(98, 0).map(&:number)
    assert_empty history.after(100, 0.01)
    assert_equal 61, history.after(30, 0).first.number, "from a whole state on, where the next is gone"
    assert_equal 61, history.after(5000, 0).first.number, "also for one that nobody has sent"
  end

  def test_a_reader_waits_for_the_next_frame_and_for_the_end
    history = history(frames(moments(3)))
    later = frames(moments(4)).last
    waiting = Thread.new { history.after(3, PATIENCE) }
    history.add(later)
    assert_equal [4], waiting.value.map(&:number)
    waiting = Thread.new { history.after(4, PATIENCE) }
    history.finish
    assert_nil waiting.value
    assert_equal [4], history.after(3, 0).map(&:number), "what is there is still sent"
    history.stop
    assert_nil history.after(3, 0)
  end
end
