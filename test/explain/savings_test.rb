# frozen_string_literal: true

require_relative "../test_helper"
require "culet/model/diagnosis"
require "culet/model/sharing/writes"

# What remedies save of memory that is free now and then, by readings of a heap whose pages come and go.
class SavingsTest < Minitest::Test
  PAGE = 4096
  PAGES = 1_000
  # As far as predictions ask.
  Region = Struct.new(:start, :fill_runs) do
    def malloc? = true
  end
  Arena = Struct.new(:free_bytes)
  Collections = Struct.new(:minor_gcs, :major_gcs) { def version = "3.1.2" }
  Mapping = Struct.new(:path, :rss_bytes)
  Snapshot = Struct.new(:regions, :trim_bytes, :free_resident_bytes, :ruby, :mappings, keyword_init: true) do
    def process = Struct.new(:page_bytes, :title, :name).new(PAGE, "program", "program")
    def malloc = self
    def allocator = Struct.new(:name) { def blocks? = true }.new("glibc")
    def arenas = Array.new(4) { Arena.new(1) }
    def environment = {}
  end

  def test_pages_that_each_reading_finds_free_are_trimmed
    idle = Array.new(6) { (0...100).to_a }
    assert_equal [900, 450, 900], saves("trim", idle)
    assert_equal [900, 721, 989], saves("allocator", idle, rest: 6)
  end

  def test_pages_that_are_used_in_turns_come_back_after_a_trim
    turns = Array.new(6) { |turn| Array.new(100) { |page| page + (turn % 3 * 100) } }
    assert_equal [700, 350, 700], saves("trim", turns)
    # culet returns them within a second; the readings are seconds apart.
    assert_equal [850, 641, 989], saves("allocator", turns, rest: 6)
  end

  def test_pages_that_no_reading_has_seen_in_use_are_estimated
    random = Random.new(1)
    some = Array.new(4) { Array.new(300) { random.rand(PAGES) }.uniq }
    expected, low, high = saves("trim", some)
    assert_operator low, :<, 200
    assert_in_delta PAGES - some.flatten.uniq.size, high, 1
    assert_in_delta (low + high) / 2.0, expected, 1
  end

  # Each page is in use at one reading, or at two neighbouring ones.
  def test_trims_come_with_major_collections
    sliding = Array.new(7) { |turn| Array.new(200) { |page| page + (100 * turn) } }
    every, other, one, none = [[0, 10, 20, 30, 40, 50, 60], [0, 0, 10, 10, 20, 20, 30], [0, 0, 0, 0, 0, 1, 1], [0] * 7].map do |majors|
      saves("trim", sliding, majors: majors)
    end
    assert_equal [600, 800], every.values_at(0, 2), "three hundred pages are in use at two readings, and a hundred in between"
    assert_operator every[1], :<, every[0]
    assert_operator other[0], :<, every[0]
    assert_equal 0, one[1], "none may come"
    assert_in_delta (1 - Math.exp(-1)) * ((4 * 171) + 600 + 533) / 6, one[0], 1
    assert_equal [0, 0, 200], none, "collections, but no major ones"
  end

  def test_a_trim_came_before_the_watch_of_a_program_that_rests
    idle = Array.new(6) { (0...100).to_a }
    assert_equal [900, 450, 900], saves("trim", idle, majors: [7] * 6, minors: [70] * 6)
  end

  # The process may have executed another program, or tells nonsense.
  def test_counts_of_collections_that_fall
    idle = Array.new(6) { (0...100).to_a }
    assert_equal [900, 450, 900], saves("trim", idle, majors: [2**40] + ([1] * 5), minors: [70] + ([1] * 5))
  end

  def test_free_blocks_begin_on_pages_that_no_trim_returns
    used = Array.new(6) { (0...100).to_a }
    assert_equal [450, 225, 450], saves("trim", used, majors: [0, 10, 20, 30, 40, 50], trimmed: 0.5)
  end

  # Certain: what the parent left is freed, objects grow old, slots between them are filled. Open: pages where blocks
  # were freed and made, and where contents differ besides. Pages that were written back as they were are copied all the same.
  def test_what_a_warm_up_keeps_shared
    writes = { %i[metadata] => 100, %i[metadata data] => 20, %i[reuse flag_bits] => 30, %i[reuse data collector] => 10, %i[metadata reuse] => 80,
               %i[metadata inline_caches] => 1_000, %i[reuse] => 2_000, %i[data] => 4_000, %i[unknown metadata] => 8_000, %i[same] => 10, %i[elsewhere] => 16_000 }
    assert_equal [185, 130, 240], after_fork("warmup", writes, copied: [600])
    assert_equal [555, 390, 720], after_fork("warmup", writes, copied: [600, 900, 300])
    assert_equal [155, 100, 210], after_fork("warmup", writes, copied: [600], flags: { "age" => 1, "frozen" => 2 })
    assert_equal [252, 120, 420], after_fork("warmup", nil, copied: [600])
    assert_equal [350, 350, 350], after_fork("warmup", { %i[freed] => 200, %i[freed collector] => 100, %i[aged] => 50, %i[collector] => 250 }, copied: [600])
  end

  # Blocks that workers only freed, unless they wrote to them before, and four fifths of what was written back as it was;
  # of the rest, culet keeps 6 % more.
  def test_what_an_allocator_keeps_shared
    assert_equal [473, 378, 520], after_fork("allocator", nil, copied: [600])
    assert_equal [473, 378, 520], after_fork("allocator", { %i[metadata data] => 500 }, copied: [600])
    assert_equal [70, 56, 77], after_fork("allocator", { %i[metadata] => 100, %i[data] => 500 }, copied: [600])
    assert_equal [140, 112, 154], after_fork("allocator", { %i[metadata] => 100, %i[data] => 500 }, copied: [600, 600])
    assert_equal [134, 107, 147], after_fork("allocator", { %i[same] => 200, %i[data] => 400 }, copied: [600])
  end

  # The parent of workers rests, so that its memory stays free. Of the worker's 600 pages it shares 200.
  def test_a_trim_of_a_parent
    parent, worker = [900, 600].map { |free| snapshot((0...(PAGES - free)).to_a) }
    worker.free_resident_bytes = 700 * PAGE
    parts = [Culet::Savings::Part.new(snapshot: parent, levels: {}),
             Culet::Savings::Part.new(snapshot: worker, levels: { "malloc_free" => 500 * PAGE }, unshared: {})]
    assert_equal [1100, 450, 1300], pages(Culet::Savings.new(parts, of: PAGES * PAGE), "trim")
  end

  # Ruby has touched all of it at the start; a forked worker shares it.
  def test_the_main_thread_s_unused_stack
    parent, worker = Array.new(2) { snapshot((0...PAGES).to_a).tap { |one| one.mappings = [Mapping.new("[stack]", 264 * PAGE), Mapping.new(nil, 900 * PAGE)] } }
    worker.free_resident_bytes = 0
    parts = [Culet::Savings::Part.new(snapshot: parent, levels: {}), Culet::Savings::Part.new(snapshot: worker, levels: {}, unshared: {})]
    savings = Culet::Savings.new(parts, of: PAGES * PAGE)
    assert_equal [[200, 100, 200], [200, 160, 220]], [pages(savings, "trim"), pages(savings, "allocator")]
  end

  def test_threads_of_one_arena_need_what_all_need_at_once
    peaks = [100, 400, 100, 100, 100, 100].map { |pages| (0...pages).to_a }
    assert_equal [413, 280, 468], saves("arenas", peaks)
  end

  def test_one_reading_tells_less
    assert_equal [450, 0, 900], saves("trim", [(0...100).to_a])
    assert_equal [270, 95, 495], saves("arenas", [(0...100).to_a])
  end

  private

  # @param readings [Array<Array<Integer>>] the pages in use at each of them
  # @param majors [Array<Integer>] major collections until then
  # @param minors [Array<Integer>] minor ones
  # @param trimmed [Float] which part of the free pages a trim returns
  # @return [Array<Integer>] pages: expected, lowest, highest
  def saves(name, readings, rest: 0, majors: [], minors: (0...readings.size).to_a, trimmed: 1)
    reuse = Culet::Diagnosis::Reuse.new
    taken = readings.zip(minors, majors).map { |used, minor, major| snapshot(used, Collections.new(minor, major), trimmed) }
    taken.zip(readings) { |one, used| reuse.add(one, levels(used)) }
    part = Culet::Savings::Part.new(snapshot: taken.last, levels: levels(readings.last))
    savings = Culet::Savings.new([part], of: PAGES * PAGE, watched: reuse.known? ? { reuse => part } : {})
    pages(savings, name).map { |pages| pages + rest }
  end

  # @param name [String] of a remedy
  # @param writes [Hash{Array<Symbol> => Integer}, nil] pages of the first worker by what was written to them
  # @param copied [Array<Integer>] pages that each worker has copied
  # @param flags [Hash{String => Integer}] first words that it has changed, by field
  # @return [Array<Integer>] pages: expected, lowest, highest
  def after_fork(name, writes, copied:, flags: { "age" => 2, "frozen" => 1 })
    found = Culet::Cow::Writes.new.tap { |one| one.flags.update(flags) } if writes
    writes&.each { |names, pages| found.add(names.sum { |name| Culet::Cow::Writes::BITS.fetch(name) }, pages * PAGE) }
    parts = copied.zip([found]).map do |pages, known|
      used = { "malloc_used" => pages * PAGE }
      Culet::Savings::Part.new(snapshot: snapshot([]), levels: used, unshared: used, writes: known)
    end
    pages(Culet::Savings.new(parts, of: PAGES * PAGE), name)
  end

  def pages(savings, name)
    found = savings.predict(Culet::Remedy.new(name: name))
    [found.saves_bytes, found.low_bytes, found.high_bytes].map { |bytes| bytes.fdiv(PAGE).round }
  end

  def levels(used) = { "malloc_used" => used.size * PAGE, "malloc_free" => (PAGES - used.size) * PAGE }

  def snapshot(used, collections = nil, trimmed = 1)
    runs = (0...PAGES).map { |page| [1, used.include?(page) ? PAGE : 0] }
    Snapshot.new(regions: [Region.new(0, runs)], trim_bytes: (trimmed * (PAGES - used.size) * PAGE).round, ruby: collections, mappings: [])
  end
end
