# frozen_string_literal: true

require "test_helper"
require_relative "../bench/redmine/contender"

# What bench/redmine/run takes behind --contenders.
class RedmineContenderTest < Minitest::Test
  def test_each_contender_has_an_allocator_and_a_mode
    found = Contender.parse("jemalloc/cluster,jemalloc:narenas=2,dirty_decay_ms=0/warm, culet/steps=collect+trim,glibc/single")
    assert_equal ["jemalloc, cluster", "jemalloc:narenas=2,dirty_decay_ms=0, warm", "culet, steps=collect+trim", "glibc, single"], found.map(&:name)
    assert_equal [false, false, false, true], found.map(&:single?)
  end

  def test_what_is_none_is_named
    assert_match(/"warmer" is no mode/, assert_raises(OptionParser::InvalidArgument) { Contender.parse("culet/warmer") }.message)
    assert_match(/nil is no mode/, assert_raises(OptionParser::InvalidArgument) { Contender.parse("culet") }.message)
    assert_match(/"steps=collect\+" is no mode/, assert_raises(OptionParser::InvalidArgument) { Contender.parse("culet/steps=collect+") }.message)
    assert_match(/nomalloc/, assert_raises(Culet::UsageError) { Contender.parse("nomalloc/warm") }.message)
  end

  # The modes that may be named are those which the configuration knows.
  def test_every_mode_is_described
    text = File.read(File.expand_path("../bench/redmine/puma.rb", __dir__))
    words = text.scan(/^#   (\w+)/).flatten
    assert_equal %w[cluster plugin requests single steps warm], words.sort
    words.each { |word| assert_match Contender::MODES, word == "steps" ? "steps=collect" : word }
  end
end
