# frozen_string_literal: true

require_relative "../test_helper"
require "culet/model/diagnosis"

# What remedies save of memory that is free now and then, by readings of a heap whose pages come and go.
class SavingsTest < Minitest::Test
  PAGE = 4096
  PAGES = 1_000
  # As far as predictions ask.
  Region = Struct.new(:start, :fill_runs) do
    def malloc? = true
  end
  Arena = Struct.new(:free_bytes)
  Snapshot = Struct.new(:regions, :trim_bytes, keyword_init: true) do
    def process = Struct.new(:page_bytes, :title, :name).new(PAGE, "program", "program")
    def malloc = self
    def allocator = Struct.new(:name) { def blocks? = true }.new("glibc")
    def arenas = Array.new(4) { Arena.new(1) }
    def mappings = []
    def environment = {}
    def ruby = nil
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
  # @return [Array<Integer>] pages: expected, lowest, highest
  def saves(name, readings, rest: 0)
    reuse = Culet::Diagnosis::Reuse.new
    readings.each { |used| reuse.add(snapshot(used), levels(used)) }
    part = Culet::Savings::Part.new(snapshot: snapshot(readings.last), levels: levels(readings.last))
    savings = Culet::Savings.new([part], of: PAGES * PAGE, watched: reuse.known? ? { reuse => part } : {})
    found = savings.predict(Culet::Remedy.new(name: name))
    [found.saves_bytes, found.low_bytes, found.high_bytes].map { |bytes| (bytes.fdiv(PAGE) + rest).round }
  end

  def levels(used) = { "malloc_used" => used.size * PAGE, "malloc_free" => (PAGES - used.size) * PAGE }

  def snapshot(used)
    runs = (0...PAGES).map { |page| [1, used.include?(page) ? PAGE : 0] }
    Snapshot.new(regions: [Region.new(0, runs)], trim_bytes: (PAGES - used.size) * PAGE)
  end
end
