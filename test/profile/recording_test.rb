# frozen_string_literal: true

require "test_helper"
require "culet/tools/profile"
require_relative "stream_maker"

# Streams that culet did not write.
class ProfileRecordingTest < Minitest::Test
  HEAD = ["culet-profile 1", "P 42 524288 1790000000000000000 1790000030500000000 5 0 3", "A 9 5 1 2 4 6 8", "R 50000000 60000000"].freeze

  def parse(*lines, count: HEAD.size + lines.size)
    Culet::Profile::Recording.new([*HEAD, *lines, "E #{count}", ""].join("\n"), name: "some.profile")
  end

  def assert_damaged(sentence, *lines, **options)
    error = assert_raises(Culet::Error) { parse(*lines, **options) }
    assert_equal "some.profile #{sentence}", error.message
  end

  def test_numbers_given_out_twice
    assert_damaged "has a frame twice", "F 1 1 /a.rb\ta", "F 1 1 /b.rb\tb"
    assert_damaged "has a type twice", "T 1 String", "T 1 Array"
    assert_damaged "has a label set twice", "L 1 a=b", "L 1 a=c"
    assert_damaged "describes its process twice", HEAD[1]
  end

  def test_circles
    assert_damaged "has a stack without its caller", "K 1 2 10", "K 2 1 10"
    assert_damaged "has a stack without its caller", "K 1 1 10"
    assert_damaged "has a stack twice", "K 1 0 10", "K 1 1 10"
    assert_damaged "has a stack twice", "K 0 0 10"
  end

  # A chain of sites, each on top of the one before, would need the square of its memory.
  def test_deep_stacks
    chain = Array.new(1025) { |at| "K #{at + 1} #{at} 10" }
    assert_equal 1024, parse(*chain.first(1024)).stack(1024).size
    assert_damaged "has a stack of more than 1024 frames", *chain
  end

  def test_mappings
    assert_damaged "has a mapping that ends before it starts", "M 2000 1000 0 - /lib/a.so"
    assert_damaged "has a build id that is none", "M 1000 2000 0 ../x /lib/a.so"
    assert_damaged "has a build id that is none", "M 1000 2000 0"
    assert_damaged "has an address that is none", "M -1 2000 0 - /lib/a.so"
  end

  def test_sizes
    assert_damaged "has a line of 1000002 bytes", "F #{"1" * 1_000_000}"
    assert_damaged "has 4 lines where its end names another number", count: 10_000_000
    assert_damaged "has a number that is too large", "F 18446744073709551615 1 /a.rb\ta"
  end

  def test_the_account_of_samples
    assert_equal [9, 5, 1, 2, 4, 6, 8], parse.account.to_a
    assert_damaged "counts its samples twice", HEAD[2]
    error = assert_raises(Culet::Error) { Culet::Profile::Recording.new("#{HEAD[0]}\nA 1 2 3 4 5 6\n", name: "some.profile") }
    assert_equal "some.profile has an incomplete line A", error.message
    assert_nil Culet::Profile::Recording.new([*HEAD[0, 2], "E 2", ""].join("\n"), name: "some.profile").account
  end

  def test_unknown_lines_are_skipped
    assert_equal 42, parse("Z something", "").pid
  end
end
