# frozen_string_literal: true

require "test_helper"
require "json"
require "culet/system/shape"

# What another process or a file says is checked before use, and the sentence names the place.
class ShapeTest < Minitest::Test
  Shape = Culet::Shape
  PIECE = Shape.tuple(Shape::COUNT, Shape::TEXT)
  SPEC = { "kind" => "it", "version" => 1, "since" => Shape.one_of("start", "now"), "pieces" => [PIECE], "share" => Shape.nullable(Shape::SECONDS),
           "by" => Shape.map(Shape::TEXT, { "bytes" => Shape::COUNT }), "more" => Shape.optional([Shape::INTEGER]),
           "file" => Shape.either({ "told" => false }, { "told" => true, "bytes" => Shape::COUNT }) }.freeze
  GOOD = { "kind" => "it", "version" => 1, "since" => "now", "pieces" => [[1, "a"], [2, "b"]], "share" => nil, "by" => { "x" => { "bytes" => 3 } },
           "file" => { "told" => true, "bytes" => 1 }, "unknown" => [nil] }.freeze

  def test_what_fits_is_returned
    assert_same GOOD, Shape.check(GOOD, SPEC, name: "f")
    assert Shape.match?(GOOD.merge("share" => 0.5, "more" => [-1], "file" => { "told" => false }), SPEC)
  end

  def test_what_does_not_fit_is_named
    { { "kind" => "else" } => 'kind is not "it"', { "version" => 1.5 } => "version is not 1", { "since" => "later" } => 'since is not one of "start", "now"',
      { "pieces" => {} } => "pieces is not a list", { "pieces" => [[1, "a"], [1]] } => "pieces[1] is not a list of 2",
      { "pieces" => [[1, "a"], [-1, "b"]] } => "pieces[1][0] is not a whole number from 0 on", { "pieces" => [[1, "a\0"]] } => "pieces[0][1] is not text",
      { "pieces" => [[1, "\xff"]] } => "pieces[0][1] is not text", { "pieces" => [[10**30, "a"]] } => "pieces[0][0] is not a whole number from 0 on",
      { "share" => Float::INFINITY } => "share is not a time", { "share" => Float::NAN } => "share is not a time", { "by" => [] } => "by is not an object",
      { "by" => { "x" => { "bytes" => "3" } } } => 'by["x"].bytes is not a whole number from 0 on', { "by" => { "x" => {} } } => 'by["x"].bytes is missing',
      { "more" => [0, nil] } => "more[1] is not a whole number", { "file" => { "told" => true } } => "file.bytes is missing" }.each do |wrong, fault|
      error = assert_raises(Culet::Error, wrong.inspect) { Shape.check(GOOD.merge(wrong), SPEC, name: "f") }
      assert_equal "f is damaged: #{fault}", error.message
    end
  end

  def test_each_key_must_be_there_and_the_whole_an_object
    (SPEC.keys - ["more"]).each do |key|
      assert_equal "f is damaged: #{key} is missing", assert_raises(Culet::Error) { Shape.check(GOOD.except(key), SPEC, name: "f") }.message
    end
    [nil, 3, [], "text"].each do |wrong|
      assert_equal "f is damaged: the whole is not an object", assert_raises(Culet::Error) { Shape.check(wrong, SPEC, name: "f") }.message
    end
  end
end
