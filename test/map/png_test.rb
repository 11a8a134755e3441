# frozen_string_literal: true

require_relative "map_helper"
require "chunky_png"
require "culet/render/map/png"

# The PNG of the whole process, read back.
class MapPngTest < Minitest::Test
  include Culet::Map

  def colours(image) = image.pixels.tally.transform_keys { |colour| format("#%06x", colour >> 8) }

  def draw(snapshot) = ChunkyPNG::Image.from_blob(Culet::Map::Png.new(snapshot).to_s)

  def test_every_state_has_as_many_pixels_as_it_has_pages
    snapshot = MapHelper.snapshot
    model = Culet::Map::Model.new(snapshot)
    image = draw(snapshot)
    found = colours(image)
    cell = [1536 / model.columns, 24].min
    states = model.cells.tally(0, model.cells.size)
    legend = 40 * 16
    { stack: "#f0e442", file: "#009e73" }.each do |kind, colour|
      assert_equal (states[Palette::INDEX.fetch(kind)] * cell * cell) + legend, found.fetch(colour), kind
    end
    full = model.cells.size.times.count { |at| model.cells.kind(at) == Palette::INDEX.fetch(:heap) && model.cells.used_bytes(at) == 4096 }
    assert_operator full, :>, 100
    assert_in_delta full * cell * cell, found.fetch("#d55e00"), legend
  end

  def test_it_is_as_wide_for_every_process
    assert_equal 1584, draw(MapHelper.snapshot).width
    assert_equal 1584, draw(MapHelper.snapshot(pages: 40)).width
  end

  def test_texts_are_drawn_and_none_is_cut_at_the_edge
    image = draw(MapHelper.snapshot(name: "a name that is far too long " * 20))
    assert_operator colours(image).fetch("#1d1f23"), :>, 1_000
    edge = (0...image.height).map { |row| format("#%06x", image[image.width - 1, row] >> 8) }.uniq
    assert_equal %w[#e6e6e1 #fdfdfc], edge.sort
  end

  def test_several_pages_share_a_pixel_where_there_are_very_many
    snapshot = MapHelper.snapshot
    model = Culet::Map::Model.new(snapshot)
    image = ChunkyPNG::Image.from_blob(Culet::Map::Png.new(snapshot, widest: model.columns / 4).to_s)
    # A strip of one colour stays so: 25 pages of a library in a row, of which four by one share a pixel's cell.
    green = colours(image).fetch("#009e73") - (40 * 16)
    assert_operator green, :>, 0
    assert_operator image.height, :<, draw(snapshot).height
    single = Culet::Map::CellColours.new(model)
    strip = model.sections.find { |section| section.group.key == "stack" }.strips.first
    assert_equal single.row(strip, 0).first(1) * 2, single.folded(strip, 0, 4)
  end

  def test_every_printable_character_has_a_glyph_of_its_own
    font = Culet::Map::Font.new
    drawn = ("!".."~").to_h { |character| [character, [].tap { |pixels| font.each_pixel(character) { |*pixel| pixels << pixel } }] }
    assert_equal [94, 94], [drawn.size, drawn.values.uniq.size]
    drawn.each_value do |pixels|
      assert_operator pixels.map { |_, row| row }.minmax.then { |top, bottom| bottom - top }, :<, 36
      assert_includes 1..15, pixels.map(&:last).max
    end
    assert_equal font.width("?"), font.width("\u00e9")
    assert_operator font.width("i"), :<, font.width("W")
  end

  # Letters have soft edges: in between ink and paper there are all shades.
  def test_letters_are_smooth
    image = draw(MapHelper.snapshot)
    shades = Array.new(40) { |row| Array.new(600) { |column| (image[24 + column, 20 + row] >> 8) & 0xff } }.flatten.tally
    assert_operator shades.size, :>=, 12
    assert_operator shades.sum { |shade, count| shade.between?(0x30, 0xf0) ? count : 0 }, :>, 500
  end

  # Text that begins or ends beyond the edge is drawn as far as it lies on the raster.
  def test_text_at_the_edge
    raster = Culet::Map::Raster.new(20, 10)
    raster.text(-6, -8, "WWWW")
    assert_equal [20, 10], ChunkyPNG::Image.from_blob(raster.to_png).dimension.to_a
  end
end
