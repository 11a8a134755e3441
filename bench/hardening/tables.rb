# frozen_string_literal: true

module HardeningBench
  # The verdicts in Markdown: the share of attacks that each contender stops, by family, then every attack.
  class Tables
    ALL = "all"
    METRIC = "attacks stopped"
    CELLS = { stopped: "stopped", no_effect: "no effect", succeeded: "**succeeded**" }.freeze

    def initialize(verdicts, contenders)
      @verdicts = verdicts
      @contenders = contenders
    end

    def to_s = [shares, details].join("\n")

    # @param runs [Integer] attempts of each attack
    # @return [Array<Bench::Row>] for --out
    def rows(runs)
      families.flat_map do |family, verdicts|
        @contenders.map do |contender|
          Bench::Row.new(subject: family, contender: contender.name, metric: METRIC, unit: "%",
                         median: (100.0 * share(verdicts, contender)).round(1), runs: runs)
        end
      end
    end

    private

    # All first.
    def families = { ALL => @verdicts, **@verdicts.group_by { |verdict| verdict.attack.family } }

    def of(verdicts, contender) = verdicts.select { |verdict| verdict.contender.equal?(contender) }

    def share(verdicts, contender)
      own = of(verdicts, contender)
      own.count(&:stopped?).fdiv(own.size)
    end

    def shares
      lines = families.map do |family, verdicts|
        [family, verdicts.map { |verdict| verdict.attack.name }.uniq.size.to_s,
         *@contenders.map { |contender| format("%.0f %%", 100 * share(verdicts, contender)) }]
      end
      "## Attacks stopped\n\n#{Bench::Table.markdown(["family", "attacks", *names], lines, left: 1)}"
    end

    def details
      lines = @verdicts.group_by(&:attack).map do |attack, verdicts|
        [attack.name, attack.effect, *verdicts.map { |verdict| CELLS.fetch(verdict.kind) }]
      end
      "## Outcomes\n\n#{Bench::Table.markdown(["attack", "effect", *names], lines, left: 2 + names.size)}"
    end

    def names = @contenders.map(&:name)
  end
end
