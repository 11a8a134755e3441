# frozen_string_literal: true

require_relative "map_helper"
require "culet/tools/report"

# What is drawn of real processes is what the kernel and the reader tell of them, to the byte.
class MapRealProcessesTest < Minitest::Test
  HOLD = "keep = [bytearray(700) for _ in range(20000)]; del keep[::3]; print('up', flush=True); import time; time.sleep(600)"

  def assert_drawn_to_the_byte(pid, allocator:)
    stop(pid) # what moves while it is read in slices cannot be compared
    snapshot = Culet::Scope::Reader.new(pid).snapshot
    assert_equal allocator, snapshot.allocator.name
    model = Culet::Map::Model.new(snapshot)
    resident = model.sections.sum { |section| model.tally(section).values_at(*Culet::Map::Palette::RESIDENT).compact.sum }
    assert_equal snapshot.process.rss_bytes, resident
    used = model.cells.size.times.sum { |cell| model.cells.kind(cell) == Culet::Map::Palette::INDEX.fetch(:heap) ? model.cells.used_bytes(cell) : 0 }
    assert_equal snapshot.malloc.used_resident_bytes, used
    model
  end

  def words(snapshot) = Culet::Map::Totals.new(snapshot).rows.map { |_, title,| title }

  # The map and the report say the same of the same memory, and what they call alike is alike.
  def assert_as_in_the_report(model)
    levels = Culet::SnapshotLevels.new(model.snapshot).levels
    cells = model.sections.map { |section| model.tally(section) }.reduce { |one, other| one.merge(other) { |_, a, b| a + b } }
    # glibc keeps its records in pages that have blocks too.
    metadata = model.snapshot.allocator.name == "glibc" ? {} : { metadata: %w[malloc_metadata] }
    { unwalked: %w[malloc_unsplit], **metadata, stack: %w[stacks], other: %w[other] }.each do |kind, names|
      assert_equal levels.values_at(*names).sum, cells.fetch(Culet::Map::Palette::INDEX.fetch(kind), 0), kind
    end
    rows = Culet::Map::Totals.new(model.snapshot).rows.to_h { |_, title, bytes| [title, bytes] }
    { "malloc_used" => "malloc: in use, resident", "malloc_free" => "malloc: free, resident" }.each do |level, title|
      assert_equal title, Culet::Levels::TITLES.fetch(level)
      assert_equal levels.fetch(level), rows.fetch(title)
    end
    assert_operator rows.values_at("malloc: in arenas, resident or not", "malloc: in own mappings, resident or not").sum, :>=, levels.fetch("malloc_used")
  end

  def test_a_program_that_is_no_ruby
    with_program("/usr/bin/python3", "-c", HOLD) { |pid| assert_drawn_to_the_byte(pid, allocator: "glibc") }
  end

  def test_ruby_with_threads
    with_program(RbConfig.ruby, "-e", MapHelper::HOLDING) do |pid|
      model = assert_drawn_to_the_byte(pid, allocator: "glibc")
      titles = model.sections.map { |section| section.group.title }
      assert_empty ["Ruby pages", "Main arena", "Stacks", "Libraries"] - titles
      assert_operator titles.grep(/\AArena: /).size, :>=, 2
      assert_as_in_the_report(model)
      assert_equal ["malloc: free, in tcaches", "malloc_trim would return"], words(model.snapshot).grep(/malloc_trim|tcache/)
    end
  end

  def test_ruby_on_culet
    with_program(*culet_command, "run", "--", RbConfig.ruby, "-e", MapHelper::HOLDING) do |pid|
      model = assert_drawn_to_the_byte(pid, allocator: "culet")
      assert_includes model.sections.map { |section| section.group.title }, "culet's heap"
      assert_as_in_the_report(model)
      assert_empty words(model.snapshot).grep(/malloc_trim|cache/)
      assert_equal 0, Culet::Map::Totals.new(model.snapshot).to_h.fetch("tcache_bytes")
    end
  end

  def test_ruby_on_an_allocator_that_cannot_be_read_is_drawn_by_its_pages
    with_program(*culet_command, "run", "--allocator", "jemalloc", "--", RbConfig.ruby, "-e", MapHelper::HOLDING) do |pid|
      snapshot = Culet::Scope::Reader.new(pid).snapshot
      model = Culet::Map::Model.new(snapshot)
      part = model.sections.find { |section| section.group.key == "malloc" }
      assert_equal "Allocator memory, not walked", part.group.title
      assert_operator model.tally(part).fetch(Culet::Map::Palette::INDEX.fetch(:unwalked)), :>, 1 << 20
      assert_nil Culet::Map::Totals.new(snapshot).to_h.fetch("used_bytes")
    end
  end
end
