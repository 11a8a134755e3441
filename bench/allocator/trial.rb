# frozen_string_literal: true

require "json"

module AllocatorBench
  # One run of one probe under one contender.
  class Trial
    # Ratios of two figures of the same run.
    RATIOS = { "all_growth_over_plain" => %w[all_growth plain_growth],
               "growth_after_a_tenth" => %w[rss_at_the_end_bytes rss_after_a_tenth_bytes] }.freeze

    # @param timeout [Numeric] seconds after which the probe is ended
    def initialize(command:, contender:, timeout:)
      @command = command
      @contender = contender
      @timeout = timeout
    end

    # @return [Bench::Outcome]
    def run
      ended = Bench::Execution.call(@contender.environment, @command, timeout: @timeout)
      ended.success? ? outcome(ended.out) : Bench::Outcome.new(nil, ended.failure)
    end

    private

    def outcome(out)
      document = JSON.parse(out)
      return Bench::Outcome.new(derived(document.fetch("figures")), nil) if @contender.serves?(document.fetch("malloc"))

      Bench::Outcome.new(nil, "the preload did not take: malloc is that of #{document.fetch("malloc")}")
    rescue JSON::ParserError, KeyError
      Bench::Outcome.new(nil, "it printed no line of figures")
    end

    # None where the allocator lacks the operation, e.g. a trim.
    def derived(figures)
      return {} if figures["able"] == false

      RATIOS.each_with_object(figures.select { |_, value| value.is_a?(Numeric) }) do |(name, (above, below)), all|
        all[name] = all[above].to_f / all[below] if all[below]
      end
    end
  end
end
