# frozen_string_literal: true

require "json"
require_relative "../test_helper"
require "culet/tools/mcp/bounded"

class McpBoundedTest < Minitest::Test
  def test_a_small_document_is_whole
    assert_equal({ "a" => [1, 2] }, cut({ "a" => [1, 2] }))
  end

  def test_the_longest_lists_lose_their_ends_and_say_how_many
    found = cut({ "short" => [1, 2], "long" => Array.new(5_000) { |i| { "name" => "row #{i}" } } })
    assert_equal [1, 2], found["short"]
    assert_equal "row 0", found["long"].first["name"]
    assert_equal 5_000, found["long"].size + found["left_out"]["long"]
  end

  def test_lists_in_lists_maps_and_long_texts
    found = cut({ "sites" => Array.new(40) { { "frames" => ["f" * 300] * 90 } }, "map" => (1..2_000).to_h { |i| ["key #{i}", i] }, "text" => "x" * 20_000 })
    assert_operator found["text"].size, :<, 500
    assert_equal 2_000, found["map"].size + found["left_out"].fetch("map", 0)
  end

  private

  def cut(document)
    text = Culet::Mcp::Bounded.new(document).to_s
    assert_operator text.bytesize, :<=, Culet::Mcp::Bounded::MOST_BYTES
    JSON.parse(text)
  end
end
