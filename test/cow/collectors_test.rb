# frozen_string_literal: true

require "rubies"
require_relative "cow_helper"

# A family whose objects are kept by a collector of which culet knows no layout.
class CowCollectorsTest < Minitest::Test
  include CowHelper

  def test_it_is_said_once_that_the_heap_is_not_known
    skip_unless_all
    pairs = Rubies.all.flat_map { |ruby| (ruby.collectors - %w[default]).map { |collector| [ruby, collector] } }
    skip "no Ruby here has another collector to load: CULET_TEST_RUBIES may name one" if pairs.empty?

    pairs.each do |ruby, collector|
      with_family(ruby.path, "--disable-gems", "-e", "#{FORKS}family(2) { nil }", env: { "RUBY_GC_LIBRARY" => collector }) do |pid|
        said = json("cow", pid.to_s)["problems"].grep(/whose heap layout is unknown/)
        assert_equal 1, said.size, collector
        assert_includes said.first, "(librubygc.#{collector}.so)"
      end
    end
  end
end
