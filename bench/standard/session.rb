# frozen_string_literal: true

module StandardBench
  # Runs programs under contenders in turn.
  class Session < Bench::Session
    # @param builder [Builder]
    # @param measure [String] path of the program that measures
    # @param others [Hash] of Bench::Session
    def initialize(builder:, measure:, **others)
      super(**others)
      @builder = builder
      @measure = measure
    end

    private

    def one(program, contender)
      Trial.new(program: program, contender: contender, builder: @builder, measure: @measure).run
    end

    def obstacle(program) = @builder.obstacle(program)
  end
end
