# frozen_string_literal: true

module StandardBench
  # Runs programs under contenders in turn.
  class Session < Bench::Session
    # @param preparation [Preparation] of the programs in Ruby
    # @param measure [String] path of the program that measures
    # @param journal [Journal, nil] of the runs that an earlier command has made
    # @param others [Hash] of Bench::Session
    def initialize(builder:, preparation:, measure:, journal: nil, **others)
      super(**others)
      @builder = builder
      @preparation = preparation
      @measure = measure
      @journal = journal
    end

    private

    def one(program, contender)
      @journal ? @journal.outcome(program, contender) { run(program, contender) } : run(program, contender)
    end

    def run(program, contender)
      Trial.new(program: program, contender: contender, builder: @builder, measure: @measure).run
    end

    def obstacle(program) = (program.ruby ? @preparation : @builder).obstacle(program)
  end
end
