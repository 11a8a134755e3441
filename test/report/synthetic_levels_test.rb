# frozen_string_literal: true

require_relative "../scope/scope_helper"
require "culet/tools/report"

# The levels of what no process here can be made to be.
class SyntheticLevelsTest < Minitest::Test
  include ScopeHelper

  MALLOC = { "arenas" => 1, "heaps" => 0, "used_bytes" => 17_384, "free_resident_bytes" => 3_096, "free_returned_bytes" => 0, "mmapped_bytes" => 0,
             "mmapped_chunks" => 0, "metadata_bytes" => 0, "tcache_bytes" => 0, "trim_bytes" => 0, "used_resident_bytes" => 17_384,
             "metadata_resident_bytes" => 0 }.freeze
  RUBY = { "version" => nil, "page_bytes" => 8_192, "pages" => 1, "slots" => [{ "slot_bytes" => 40, "pages" => 1, "live" => 3, "free" => 201 }],
           "live_bytes" => 120, "free_bytes" => 8_040, "overhead_bytes" => 32, "live_resident_bytes" => 120, "free_resident_bytes" => 8_040,
           "overhead_resident_bytes" => 32, "transient_bytes" => 0, "transient_resident_bytes" => 0, "why" => "" }.freeze

  # Where the kernel's pages are larger than Ruby's, Ruby has its pages from malloc: they count once.
  def test_rubys_pages_in_mallocs_blocks
    levels = memory { |writer| ruby_page(writer.object("malloc", MALLOC).object("ruby", RUBY)) }.levels
    assert_equal [120, 8_040, 32], levels.values_at("ruby_objects", "ruby_free_slots", "ruby_page_overhead")
    assert_equal [17_384 - 8_192, 3_096, 0], levels.values_at("malloc_used", "malloc_free", "unexplained")
  end

  # A collector that Ruby loaded as a library names its memory, and has no pages that are known.
  def test_a_heap_of_rubys_that_is_not_known
    mapping = MAPPING.merge("path" => "[anon:mmtk:space:immix]", "use" => "ruby")
    unknown = RUBY.merge("pages" => 0, "slots" => [], **RUBY.keys.grep(/live|free|overhead/).to_h { |key| [key, 0] })
    { unknown => %w[ruby_unsplit other], RUBY => %w[other ruby_unsplit] }.each do |ruby, (level, none)|
      stream = Writer.new.object("process", PROCESS).object("allocator", ALLOCATOR).object("mapping", mapping).numbers("P", 0, 5, 5, 3, 0)
                     .object("ruby", ruby).close
      levels = Culet::SnapshotLevels.new(Culet::Scope::Builder.new(stream).call).levels
      assert_equal [true, 0], [levels.fetch(level).positive?, levels.fetch(none)], level
    end
  end

  def test_blocks_that_are_not_known
    levels = memory(allocator: ALLOCATOR.merge("level" => "pages")).levels
    assert_equal [5 * PAGE_BYTES, 0], levels.values_at("malloc_unsplit", "unexplained")
  end

  # Sums that do not fit show as unexplained, and the levels add up nevertheless.
  def test_a_sum_that_is_wrong
    { 1_000 => -1_000, -500 => 500 }.each do |too_much, unexplained|
      malloc = MALLOC.merge("used_resident_bytes" => MALLOC["used_resident_bytes"] + too_much)
      memory = memory { |writer| writer.object("malloc", malloc) }
      assert_equal [unexplained, 5 * PAGE_BYTES], [memory.unexplained_bytes, memory.levels.values.sum]
    end
  end

  # What rounds to nought is not worth a row, and has no sign.
  def test_next_to_nothing_unexplained
    malloc = MALLOC.merge("used_resident_bytes" => MALLOC["used_resident_bytes"] + 8)
    text = Culet::Report::Table.new(memory { |writer| writer.object("malloc", malloc) }.snapshot).to_s
    refute_match(/-0\.0|^unexplained/, text)
    assert_match(/^malloc: in use, resident /, text)
  end

  # Remedies are sentences as long as others.
  def test_long_remedies_are_wrapped
    one = Culet::Verdict.new(topic: "topic", text: "text", remedy: "word " * 50)
    lines = Culet::Text::Lines.verdicts([one], &:itself).lines(chomp: true)
    assert_operator lines.map(&:size).max, :<=, 100
    assert_operator lines.size, :>, 3
    assert_equal ["  word", "    word"], lines[1, 2].map { |line| line[/\A +word/] }
  end

  def test_a_process_of_which_nothing_is_resident
    process = PROCESS.merge("rss_bytes" => 0)
    stream = Writer.new.object("process", process).object("allocator", ALLOCATOR.merge("name" => "none", "level" => "pages")).close
    snapshot = Culet::Scope::Builder.new(stream).call
    assert_equal 0, Culet::SnapshotLevels.new(snapshot).levels.values.sum
    assert_match(/no memory is resident/, Culet::Report::Table.new(snapshot).to_s)
  end

  private

  def memory(**records, &block)
    Culet::SnapshotLevels.new(Culet::Scope::Builder.new(small_stream(**records, &block)).call)
  end

  # At the second page of the region.
  def ruby_page(writer) = writer.numbers("R", REGION["start"] + PAGE_BYTES, 40, 32, 204, tail: "\x07".ljust(26, "\0"))
end
