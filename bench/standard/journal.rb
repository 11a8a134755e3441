# frozen_string_literal: true

require "digest"
require_relative "../journal"

module StandardBench
  # The runs of a measurement that has not ended, in a file beside its results. The first line says of what they are.
  class Journal
    # @return [Hash] what must be the same for runs to be compared
    def self.identity(contenders)
      libraries = contenders.to_h do |contender|
        [contender.name, contender.library ? Digest::SHA256.file(contender.library).hexdigest : contender.version]
      end
      { "ruby" => RUBY_DESCRIPTION, "allocators" => libraries }
    end

    # @return [Integer] runs that were there
    attr_reader :size

    # @param identity [Hash]
    # @raise [Culet::Error] where the file is another run's
    def initialize(path, identity)
      @path = path
      @journal = Bench::Journal.new(path)
      @runs = Hash.new { |runs, key| runs[key] = [] }
      first, *lines = @journal.lines
      check(first, identity)
      lines.each { |line| @runs[line.values_at("program", "contender")] << Bench::Outcome.new(*line.values_at("figures", "reason")) }
      @size = lines.size
    end

    # @yieldreturn [Bench::Outcome] where no run is left in the file
    def outcome(program, contender)
      @runs[[program.name, contender.name]].shift || yield.tap do |outcome|
        @journal.add({ "program" => program.name, "contender" => contender.name, **outcome.to_h })
      end
    end

    # The measurement has ended.
    def remove = File.delete(@path)

    private

    def check(first, identity)
      return @journal.add(identity) unless first
      return if first == identity

      raise Culet::Error, "#{@path} has runs of other allocators or on another Ruby; repeat that command, or remove " \
                          "the file to start anew"
    end
  end
end
