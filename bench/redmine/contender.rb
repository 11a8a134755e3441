# frozen_string_literal: true

require "optparse"
require "culet/tools/compare"

# An allocator and a mode of running Puma (see puma.rb).
class Contender
  SUBJECTS = { "single" => "one process of 8 threads", "cluster" => "three workers",
               "warm" => "three workers, warmed up" }.freeze
  MODES = /\A(?:single|cluster|warm|plugin|requests|steps=[a-z]+(?:\+[a-z]+)*)\z/

  attr_reader :choice, :mode

  # @param text [String] e.g. "jemalloc/cluster,glibc:arena_max=2/warm,culet/steps=collect+trim"
  # @return [Array<Contender>]
  # @raise [Culet::UsageError, OptionParser::InvalidArgument] naming what is wrong
  def self.parse(text)
    Culet::Benchmark::Plan.split_allocators(text).map do |word|
      spec, mode = word.split("/", 2)
      new(spec, mode)
    end
  end

  # @param spec [String] as `culet run --allocator` takes it
  # @param mode [String]
  def initialize(spec, mode)
    raise OptionParser::InvalidArgument, "#{mode.inspect} is no mode; see puma.rb" unless MODES.match?(mode.to_s)

    @choice = Culet::Allocators.parse(spec)
    @mode = mode
  end

  def name = "#{choice.spec}, #{mode}"

  # @return [String] the mode for the tables
  def subject = SUBJECTS.fetch(mode, "three workers, #{mode}")

  def single? = mode == "single"
end
