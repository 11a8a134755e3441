# frozen_string_literal: true

require_relative "region_blocks"
require_relative "scope_helper"

# A stream as a reader gets it: whole, broken, of another version.
class ScopeStreamTest < Minitest::Test
  include ScopeHelper

  def test_a_whole_stream
    snapshot = build(small_stream { |writer| writer.numbers("C", 0, 0, (64 << 2) | 1, (2 << 2) | 3) })
    assert_equal [7, "made", "glibc"], [snapshot.pid, snapshot.process.name, snapshot.allocator.name]
    mapping = snapshot.mappings.first
    assert_equal [[5, 5], [3, 0]], mapping.page_runs.to_a
    assert_equal [[0x10000, 0x15000]], mapping.enum_for(:each_resident, PAGE_BYTES).to_a
    region = snapshot.regions.first
    assert_equal [[4, 4096], [1, 1000], [2, 0]], region.fill_runs.to_a
    assert_equal [[0, 1024, 1], [1024, 32, 3]], RegionBlocks.of(region)
    assert_in_delta 1_700_000_000.5, snapshot.time.to_f
  end

  def test_ruby_pages_have_a_bit_for_each_slot
    page = build(small_stream { |writer| writer.numbers("R", 0x20000, 40, 16, 10, tail: [0b11, 0b10].pack("CC")) }).ruby_pages.first
    assert_equal [0x20000, 40, 16, 10, "1100000001000000"],
                 [page.address, page.slot_bytes, page.first_slot, page.slots, page.live.unpack1("b*")]
  end

  def test_numbers_of_64_bits
    value = (1 << 64) - 1
    assert_equal value, build(small_stream { |writer| writer.numbers("R", value, 40, 0, 8, tail: "\0") }).ruby_pages.first.address
  end

  def test_unknown_records_and_kinds_are_passed_over
    snapshot = build(small_stream { |writer| writer.record("?", "later").object("weather", "rain" => true).object("problem", "sentence" => "it rains") })
    assert_equal ["it rains"], snapshot.problems
  end

  def test_the_zero_page_is_not_resident
    stream = small_stream do |writer|
      writer.object("mapping", MAPPING.merge("id" => 1, "start" => 0x20000, "end" => 0x23000)).numbers("P", 1, 1, 32, 1, 33, 1, 1)
    end
    assert_equal [[0x22000, 0x23000]], build(stream).mappings.last.enum_for(:each_resident, PAGE_BYTES).to_a
  end

  # Wherever it is cut, a sentence says so.
  def test_a_stream_that_is_cut_off
    whole = small_stream
    (0...whole.bytesize).each do |length|
      error = assert_raises(Culet::Error, "cut to #{length}") { build(whole.byteslice(0, length)) }
      assert_match(/\Ait is cut off; take it again\z/, error.message)
    end
  end

  # Whichever byte is changed, it is noticed.
  def test_a_stream_in_which_a_byte_is_changed
    whole = small_stream
    whole.bytesize.times do |at|
      changed = whole.dup
      changed.setbyte(at, changed.getbyte(at) ^ 0x15)
      error = assert_raises(Culet::Error, "changed at #{at}") { build(changed) }
      assert_match(/\Ait (is damaged|is cut off|holds nothing that culet-scope wrote|was written by another version)/, error.message)
    end
  end

  def test_another_versions
    error = assert_raises(Culet::Error) { build(Writer.new(header: "culet-scope 2\n\0\0").close) }
    assert_equal 'it was written by another version of culet (format "2", this one reads 1); read it with that version', error.message
  end

  def test_something_behind_the_end
    assert_match(/damaged: something follows/, assert_raises(Culet::Error) { build("#{small_stream}J") }.message)
  end

  # What is written by others is checked before it is used, though its checksum fits.
  {
    "no process" => [/names no process/, ->(_) { Writer.new.close }],
    "no JSON" => [/no JSON/, ->(test) { test.small_stream { |writer| writer.record("J", "{") } }],
    "no object" => [/not an object/, ->(test) { test.small_stream { |writer| writer.record("J", "[1]") } }],
    "deep JSON" => [/no JSON/, ->(test) { test.small_stream { |writer| writer.record("J", "#{"[" * 2000}#{"]" * 2000}") } }],
    "text for a number" => [/no rss_bytes that is a whole number/, ->(test) { test.small_stream(process: PROCESS.merge("rss_bytes" => "5")) }],
    "a negative number" => [/no rss_bytes/, ->(test) { test.small_stream(mapping: MAPPING.merge("rss_bytes" => -1)) }],
    "a fraction" => [/no start/, ->(test) { test.small_stream(mapping: MAPPING.merge("start" => 1.5)) }],
    "a page of no bytes" => [/page_bytes/, ->(test) { test.small_stream(process: PROCESS.merge("page_bytes" => 0)) }],
    "no time" => [/no time that is a number of seconds/, ->(test) { test.small_stream(process: PROCESS.merge("time" => "x")) }],
    "an endless time" => [/no time/, ->(test) { test.small_stream(process: PROCESS.merge("time" => 10**300)) }],
    "a histogram of text" => [/no buckets that is a list of five/,
                              ->(test) { test.small_stream { |writer| writer.object("sizes", "buckets" => [[1, 2, 3, 4, "x"]]) } }],
    "a histogram too short" => [/no buckets that is a list of five/,
                                ->(test) { test.small_stream { |writer| writer.object("sizes", "buckets" => [[1]]) } }],
    "a mapping backwards" => [/ends before it starts/, ->(test) { test.small_stream(mapping: MAPPING.merge("end" => 1)) }],
    "overlapping regions" => [/two of its regions overlap/,
                              ->(test) { test.small_stream { |writer| writer.object("region", REGION.merge("id" => 1, "start" => 0x16000)) } }],
    "pages of no mapping" => [/a mapping that it does not name/, ->(test) { test.small_stream { |writer| writer.numbers("P", 9, 1, 1) } }],
    "a number cut off" => [/number in it is cut off/, ->(test) { test.small_stream { |writer| writer.record("P", "\x00\x80".b) } }],
    "an endless number" => [/longer than 64 bits/, ->(test) { test.small_stream { |writer| writer.record("P", "\xff".b * 20) } }],
    "pages beyond the end" => [/pages beyond its end/, ->(test) { test.small_stream { |writer| writer.numbers("P", 0, 9, 1) } }],
    "a fill beyond the end" => [/region 0 has pages beyond its end/, ->(test) { test.small_stream { |writer| writer.numbers("F", 0, 8, 1) } }],
    "a page too full" => [/more in use than it holds/, ->(test) { test.small_stream { |writer| writer.numbers("F", 0, 1, 4097) } }],
    "half a run" => [/half a run/, ->(test) { test.small_stream { |writer| writer.numbers("P", 0, 8) } }],
    "a Ruby page without bits" => [/a bit for each slot/, ->(test) { test.small_stream { |writer| writer.numbers("R", 0x20000, 40, 0, 100) } }],
    "a Ruby page cut off" => [/Ruby's is cut off/, ->(test) { test.small_stream { |writer| writer.numbers("R", 0x20000, 40) } }]
  }.each do |what, (pattern, stream)|
    define_method("test_#{what.tr(" ", "_")}") do
      error = assert_raises(Culet::Error) { build(stream.call(self)) }
      assert_match pattern, error.message
    end
  end

  def test_names_are_made_valid_text
    stream = small_stream { |writer| writer.record("J", "{\"kind\":\"problem\",\"sentence\":\"a\xffb\"}".b) }
    assert_equal ["a?b"], build(stream).problems
  end

  private

  def build(bytes) = Culet::Scope::Builder.new(bytes, name: "it").call
end
