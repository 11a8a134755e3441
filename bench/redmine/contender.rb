# frozen_string_literal: true

require "optparse"
require "culet/tools/compare"

# An allocator and a manner of running Puma (see puma.rb).
class Contender
  SUBJECTS = { "single" => "one process of 8 threads", "cluster" => "three workers", "warm" => "three workers, warmed up" }.freeze
  MANNERS = /\A(?:single|cluster|warm|plugin|requests|steps=[a-z]+(?:\+[a-z]+)*)\z/

  attr_reader :choice, :manner

  # @param text [String] e.g. "jemalloc/cluster,glibc:arena_max=2/warm,culet/steps=collect+trim"
  # @return [Array<Contender>]
  # @raise [Culet::UsageError, OptionParser::InvalidArgument] naming what is wrong
  def self.parse(text) = Culet::Compare::Plan.split_allocators(text).map { |word| word.split("/", 2).then { |spec, manner| new(spec, manner) } }

  # @param spec [String] as `culet run --allocator` takes it
  # @param manner [String]
  def initialize(spec, manner)
    raise OptionParser::InvalidArgument, "#{manner.inspect} is no manner; see puma.rb" unless MANNERS.match?(manner.to_s)

    @choice = Culet::Allocators.parse(spec)
    @manner = manner
  end

  def name = "#{choice.spec}, #{manner}"

  # @return [String] the manner in words
  def subject = SUBJECTS.fetch(manner, "three workers, #{manner}")

  def single? = manner == "single"
end
