# frozen_string_literal: true

require_relative "../../../benchmark/exclusion"
require_relative "../../../model/statistics"
require_relative "../../../version"
require_relative "run"

module Culet
  module Cow
    module Experiment
      # Executes the runs of a plan, one at a time, and makes the document.
      class Engine
        FIGURES = %w[gc_first_seconds gc_second_seconds forked_pss_bytes total_pss_bytes
                     parent_rss_bytes parent_shared_bytes parent_private_bytes
                     child_rss_bytes child_shared_bytes child_private_bytes].freeze
        # Figures with a comparison between contenders.
        COMPARED = %w[gc_first_seconds gc_second_seconds total_pss_bytes child_private_bytes].freeze

        # @param plan [Plan]
        # @param interruption [Interruption]
        # @param say [Proc] called with a line of progress for each run
        def initialize(plan:, interruption:, say: ->(_) {})
          @plan = plan
          @interruption = interruption
          @say = say
          @runs = Hash.new { |runs, key| runs[key] = [] }
          @excluded = {}
        end

        # @return [Hash] the document; "complete" is false after an interruption
        # @raise [Culet::Error] when a program cannot be started
        def call
          complete = execute_runs
          { "culet" => VERSION, "complete" => complete, "strings" => @plan.strings, "runs" => @plan.runs,
            "seed" => @plan.seed, "machine" => machine, "results" => results, "comparisons" => comparisons,
            "excluded" => @excluded.values }
        end

        private

        def execute_runs
          @plan.turns.each do |turn|
            @interruption.check
            execute(turn) unless @excluded.key?([turn.variant, turn.contender])
          end
          true
        rescue Interrupted
          false
        end

        def execute(turn)
          figures = Run.new(contender: turn.contender, variant: turn.variant, strings: @plan.strings,
                            timeout_seconds: @plan.timeout_seconds, interruption: @interruption).call
          @runs[[turn.variant, turn.contender]] << { "run" => turn.run, "order" => turn.order, **figures }
          @say.call(format("%s, %s, run %d: %.2f and %.2f s, %.0f MB together",
                           turn.variant.name, turn.contender.name, turn.run,
                           figures["gc_first_seconds"], figures["gc_second_seconds"], figures["total_pss_bytes"] / 1e6))
        rescue Benchmark::Exclusion => e
          exclude(turn, e)
        end

        # One failed run excludes the contender: the other runs would be a biased sample.
        def exclude(turn, exclusion)
          @runs.delete([turn.variant, turn.contender])
          @excluded[[turn.variant, turn.contender]] =
            { "variant" => turn.variant.name, "contender" => turn.contender.name, "run" => turn.run,
              "reason" => exclusion.message }
          @say.call("#{turn.variant.name}, #{turn.contender.name}: excluded: #{exclusion.message}")
        end

        def statistics = @statistics ||= Statistics.new(seed: @plan.seed)

        def pairs = @plan.variants.product(@plan.contenders).select { |pair| @runs.key?(pair) }

        def results
          pairs.map do |variant, contender|
            runs = @runs[[variant, contender]].sort_by { |run| run["run"] }
            summary = FIGURES.to_h { |figure| [figure, statistics.summary(runs.map { |run| run[figure] })] }
            { "variant" => variant.name, "key" => variant.key, "warm" => variant.warm, "contender" => contender.name,
              "interpreter" => contender.interpreter.name, "allocator" => contender.choice.spec, "runs" => runs,
              "summary" => summary }
          end
        end

        def comparisons
          pairs.flat_map do |variant, contender|
            baseline = baseline_of(contender)
            next [] if baseline == contender

            COMPARED.filter_map { |figure| comparison(variant, contender, baseline, figure) }
          end
        end

        # Allocators are compared on the same interpreter, interpreters on the same allocator.
        def baseline_of(contender)
          first = @plan.contenders.find { |other| other.interpreter == contender.interpreter }
          first == contender ? @plan.contenders.find { |other| other.choice.spec == contender.choice.spec } : first
        end

        def comparison(variant, contender, baseline, figure)
          found = statistics.compare(by_run(variant, contender, figure), by_run(variant, baseline, figure))
          return unless found

          { "variant" => variant.name, "contender" => contender.name, "baseline" => baseline.name,
            "metric" => figure, **found }
        end

        def by_run(variant, contender, figure)
          @runs.fetch([variant, contender], []).to_h { |run| [run["run"], run[figure]] }
        end

        def machine
          { "kernel" => File.read("/proc/sys/kernel/osrelease").chomp, "page_bytes" => Processes::Memory::PAGE_BYTES,
            "processors" => Etc.nprocessors }
        end
      end
    end
  end
end
