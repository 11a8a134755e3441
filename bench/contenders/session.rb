# frozen_string_literal: true

module Bench
  # Runs subjects (probes or programs) under contenders in turn: each round every contender once, another one first each
  # time, so that a slow minute of the machine slows all of them. A subclass defines `one`.
  class Session
    # @param runs [Integer, nil] of each contender; nil for the subject's own number
    def initialize(contenders:, runs: nil)
      @contenders = contenders
      @runs = runs
    end

    # @param subject [#name, #runs, #figures]
    # @return [Result]
    def measure(subject)
      result = Result.new(subject, @contenders)
      (@runs || subject.runs).times do |round|
        @contenders.rotate(round).each do |contender|
          break if (result.skipped = obstacle(subject))
          next if result.out?(contender)

          Bench.progress("#{subject.name} #{contender.name}")
          result.add(contender, one(subject, contender))
        end
      end
      result
    end

    private

    # @return [String, nil] why the subject cannot run at all
    def obstacle(_subject) = nil

    # @return [Outcome]
    def one(_subject, _contender) = raise(NotImplementedError)
  end
end
