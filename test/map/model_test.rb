# frozen_string_literal: true

require_relative "map_helper"

# A snapshot as cells: every page is there, with its state and its bytes in use.
class MapModelTest < Minitest::Test
  PAGE = Synthetic::PAGE

  def setup
    @snapshot = MapHelper.snapshot
    @model = Culet::Map::Model.new(@snapshot)
  end

  def index(key) = Culet::Map::Palette::INDEX.fetch(key)

  def malloc_regions = @snapshot.regions.reject(&:ruby?)

  # Address => bits, of every page of every mapping.
  def states
    @snapshot.mappings.flat_map do |mapping|
      mapping.page_runs.flat_map { |count, bits| [bits] * count }.each_with_index.map { |bits, page| [mapping.start + (page * PAGE), bits] }
    end.to_h
  end

  def test_every_page_of_malloc_has_its_cell_with_its_state_and_its_bytes
    bits = states
    seen = []
    malloc_regions.each do |region|
      region.fill_runs.flat_map { |count, used| [used] * count }.each_with_index do |used, page|
        address = region.start + (page * PAGE)
        cell = @model.cell_at(address)
        seen << cell
        resident = bits.fetch(address) & 1 == 1
        assert_equal index(resident ? :heap : :returned), @model.cells.kind(cell)
        assert_equal used, @model.cells.used_bytes(cell), "at #{address.to_s(16)}"
      end
    end
    assert_equal seen.uniq.size, seen.size
    assert_equal malloc_regions.sum(&:bytes) / PAGE, seen.size
  end

  def test_resident_cells_add_up_to_what_is_resident
    resident = @model.sections.sum { |section| @model.tally(section).values_at(*Culet::Map::Palette::RESIDENT).compact.sum }
    assert_equal @snapshot.process.rss_bytes, resident
  end

  def test_ruby_pages_are_filled_by_their_live_slots
    pages = @snapshot.ruby_pages
    cells = pages.flat_map { |page| Array.new(16) { |number| @model.cell_at(page.address + (number * PAGE)) } }
    assert_equal([index(:ruby)], cells.map { |cell| @model.cells.kind(cell) }.uniq)
    used = cells.sum { |cell| @model.cells.used_bytes(cell) }
    # A slot belongs to the page it starts in, which 40-byte slots overfill by less than one.
    assert_in_delta pages.sum { |page| page.live.unpack1("b*").count("1") } * 40, used, cells.size * 40
    assert_operator cells.map { |cell| @model.cells.used_bytes(cell) }.max, :<=, PAGE
  end

  def test_arenas_heaps_and_uses_are_parts_of_their_own
    assert_equal ["Ruby pages", "Main arena", "Arena: thread 1", "Stacks", "Libraries"], @model.sections.map { |section| section.group.title }
  end

  def test_rows_do_not_overlap_and_pieces_keep_the_order_of_addresses
    strips = @model.sections.flat_map(&:strips)
    strips.each_cons(2) { |one, other| assert_operator one.row + one.rows, :<, other.row }
    assert_operator strips.last.row + strips.last.rows, :<=, @model.rows
    @model.sections.each { |section| assert_equal section.strips.flat_map(&:pieces).map(&:address).sort, section.strips.flat_map(&:pieces).map(&:address) }
    strips.each { |strip| assert_operator strip.cells, :<=, strip.rows * @model.columns }
  end

  def test_long_absent_stretches_of_other_mappings_are_left_out
    stack = @model.sections.find { |section| section.group.key == "stack" }
    assert_equal({ index(:stack) => 8 * PAGE }, @model.tally(stack))
    library = @model.sections.find { |section| section.group.key == "library" }
    assert_equal([25, 5], library.strips.flat_map(&:pieces).map(&:pages))
  end

  def test_private_pages_are_known_from_shared_ones
    bits = states
    malloc_regions.first.then do |region|
      (region.start...region.end).step(PAGE).each do |address|
        state = @model.cells.states.getbyte(@model.cell_at(address))
        expected = { 0 => 0, 1 => Culet::Map::Cells::SHARED, 5 => Culet::Map::Cells::PRIVATE }.fetch(bits.fetch(address))
        assert_equal expected, state & (Culet::Map::Cells::SHARED | Culet::Map::Cells::PRIVATE)
      end
    end
  end

  def test_regions_that_share_a_page_add_up_in_its_cell
    process = Synthetic.new
    mapping = process.map(start: MapHelper::HEAP, pages: 2, bits: [5, 5], use: "malloc")
    process.part(arena: 0, kind: "slabs", start: MapHelper::HEAP, bytes: 6000, mapping: mapping, runs: [1, 4096, 1, 1000])
    process.part(arena: 0, kind: "slabs", start: MapHelper::HEAP + 6000, bytes: 2192, mapping: mapping, runs: [1, 2000])
    model = Culet::Map::Model.new(Culet::Scope::Builder.new(process.to_s).call)
    assert_equal [4096, 3000], [0, 1].map { |page| model.cells.used_bytes(model.cell_at(MapHelper::HEAP + (page * PAGE))) }
  end

  def test_swapped_pages_metadata_and_zero_pages
    process = Synthetic.new
    mapping = process.map(start: MapHelper::HEAP, pages: 4, bits: [2, 5, 33, 5], use: "malloc")
    process.part(arena: 0, kind: "slabs", start: MapHelper::HEAP, bytes: 3 * PAGE, mapping: mapping, runs: [2, 4096, 1, 0])
    process.part(arena: 0, kind: "metadata", start: MapHelper::HEAP + (3 * PAGE), bytes: PAGE, mapping: mapping, runs: [1, 0])
    model = Culet::Map::Model.new(Culet::Scope::Builder.new(process.to_s).call)
    kinds = Array.new(4) { |page| Culet::Map::Palette::KINDS[model.cells.kind(model.cell_at(MapHelper::HEAP + (page * PAGE)))].key }
    assert_equal %w[swapped heap returned metadata], kinds
  end

  def test_several_pages_of_rubys_in_one_of_the_kernels_add_up
    process = Synthetic.new(page_bytes: 65_536)
    mapping = process.map(start: MapHelper::HEAP, pages: 1, bits: [5], use: "ruby")
    process.part(arena: nil, kind: "ruby", start: MapHelper::HEAP, bytes: 65_536, mapping: mapping, runs: [1, 65_536])
    [0, 2].each { |number| process.full_ruby_page(address: MapHelper::HEAP + (number * 16_384), slot_bytes: 40, slots: 400) }
    model = Culet::Map::Model.new(Culet::Scope::Builder.new(process.to_s).call)
    assert_equal 2 * 400 * 40, model.cells.used_bytes(model.cell_at(MapHelper::HEAP))
  end

  def test_mappings_that_are_not_of_whole_pages_are_refused
    process = Synthetic.new
    process.map(start: MapHelper::HEAP + 8, pages: 1, use: "other")
    snapshot = Culet::Scope::Builder.new(process.to_s).call
    assert_includes assert_raises(Culet::Scope::Malformed) { Culet::Map::Model.new(snapshot) }.message, "mapping 0 is not of whole pages"
  end

  def test_more_pages_than_a_picture_can_show_are_refused
    process = Synthetic.new
    process.map(start: MapHelper::HEAP, pages: 1 << 27, use: "other", bits: [5], runs: [1 << 27, 5])
    snapshot = Culet::Scope::Builder.new(process.to_s).call
    error = assert_raises(Culet::Error) { Culet::Map::Model.new(snapshot) }
    assert_includes error.message, "134217728 pages to show"
  end

  def test_a_process_of_which_nothing_is_known_but_its_mappings
    process = Synthetic.new
    process.map(start: MapHelper::HEAP, pages: 10, use: "other")
    model = Culet::Map::Model.new(Culet::Scope::Builder.new(process.to_s).call)
    assert_equal(["Other mappings"], model.sections.map { |section| section.group.title })
    empty = Culet::Map::Model.new(Culet::Scope::Builder.new(Synthetic.new.to_s).call)
    assert_empty empty.sections
    assert_equal 0, empty.cells.size
  end
end
