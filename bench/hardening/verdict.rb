# frozen_string_literal: true

module HardeningBench
  # The attempts of one attack under one contender.
  class Verdict
    attr_reader :attack, :contender

    def initialize(attack, contender)
      @attack = attack
      @contender = contender
      @endings = []
    end

    # Attempts until one succeeds, at most `runs`: an attacker needs a single success.
    #
    # @return [Verdict] itself
    def run(runs)
      runs.times do
        @endings << Attempt.new(attack, contender).run
        break if kind == :succeeded
      end
      self
    end

    # @return [Symbol] :succeeded where one attempt did, :stopped where one ended the process, else :no_effect
    def kind = %i[succeeded stopped no_effect].find { |kind| @endings.any? { |ending| ending.kind == kind } }

    # @return [Boolean] whether no attempt succeeded
    def stopped? = kind != :succeeded

    def attempts = @endings.size

    # @return [String, nil] the diagnostic or signal
    def message = @endings.find { |ending| ending.kind == kind }&.message

    # @return [Hash] for --json
    def to_h
      { "attack" => attack.name, "family" => attack.family, "effect" => attack.effect, "contender" => contender.name,
        "outcome" => kind.to_s, "attempts" => attempts, "message" => message }.compact
    end
  end
end
