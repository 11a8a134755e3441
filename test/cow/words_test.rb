# frozen_string_literal: true

require "test_helper"
require "culet"

# The extension's loops over words say what the same in Ruby says.
class CowWordsTest < Minitest::Test
  WORD = 8

  def setup
    @random = Random.new(7)
  end

  def test_words_that_differ
    100.times do
      one = @random.bytes(@random.rand(0..700))
      other = one.dup
      @random.rand(0..20).times { other.setbyte(@random.rand(other.bytesize), 0) unless other.empty? }
      other = other.byteslice(0, @random.rand(0..other.bytesize)) if @random.rand(3).zero?
      assert_equal differing(one, other), Culet::Words.differing(one, other)
    end
  end

  # Aligned as malloc's blocks are, and in one of the ranges: their first address is in, their last is not.
  def test_words_in_ranges
    ranges = [[0x1000, 0x2000], [0x8000, 0x8010], [0x10_0000, 0x20_0000]]
    words = [0x1000, 0x1008, 0x1ff0, 0x2000, 0x8000, 0x8010, 0xfff0, 0x1f_fff0, 0x20_0000, 0, 2**64 - 16]
    assert_equal [0x1000, 0x1ff0, 0x8000, 0x1f_fff0], Culet::Words.within(words.pack("Q*"), ranges.flatten.pack("Q*"))
    assert_empty Culet::Words.within(words.pack("Q*"), "")
    assert_empty Culet::Words.within("", ranges.flatten.pack("Q*"))
    many = Array.new(500) { |i| [i * 0x1000, (i * 0x1000) + 0x500] }
    words = Array.new(5000) { @random.rand(600 * 0x1000) }
    assert_equal words.select { |word| (word % 16).zero? && many.any? { |first, past| word >= first && word < past } }, Culet::Words.within(words.pack("Q*"), many.flatten.pack("Q*"))
  end

  # Three words before the first slot, four slots of five words, and one word more.
  def test_words_in_slots
    slots = [[0x1_0000_0005, 7, 0x1010, 3, 0], [8, 2**63, 0, 0, 0], [9, 0x1020, 0x1030, 0x1004, 0], [1, 2, 3, 4, 0x1ff0]]
    bytes = [0x1000, 0x1000, 0x1000, *slots.flatten, 0x1000].pack("Q*")
    expected = [0x1010, 5, 7, 0x1020, 9, 0x1020, 0x1030, 9, 0x1020, 0x1ff0, 1, 2]
    assert_equal expected, Culet::Words.in_slots(bytes, 3, 5, [0x1000, 0x2000].pack("Q*"))
    assert_raises(ArgumentError) { Culet::Words.in_slots(bytes, 3, 0, "") }
    assert_raises(TypeError) { Culet::Words.in_slots(nil, 3, 5, "") }
  end

  private

  def differing(one, other) = (0...([one.bytesize, other.bytesize].min / WORD)).reject { |word| one.byteslice(word * WORD, WORD) == other.byteslice(word * WORD, WORD) }
end
