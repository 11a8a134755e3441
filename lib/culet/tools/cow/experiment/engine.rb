# frozen_string_literal: true

require "etc"
require_relative "../../../benchmark/progress"
require_relative "../../../benchmark/runner"
require_relative "run"

module Culet
  module Cow
    module Experiment
      # The result of an experiment.
      class Document < Benchmark::Document
        FIGURES = %w[gc_first_seconds gc_second_seconds forked_pss_bytes total_pss_bytes
                     parent_rss_bytes parent_shared_bytes parent_private_bytes
                     child_rss_bytes child_shared_bytes child_private_bytes].freeze
        # Figures with a comparison between contenders.
        COMPARED = %w[gc_first_seconds gc_second_seconds total_pss_bytes child_private_bytes].freeze

        private

        def head(environment) = environment

        def about(variant, contender) = { "variant" => variant.name, "contender" => contender.name }

        def metrics = FIGURES

        def compared(_variant) = COMPARED

        # Allocators are compared on the same interpreter, interpreters on the same allocator.
        def baseline(contender)
          first = @plan.choices.find { |other| other.interpreter == contender.interpreter }
          first = @plan.choices.find { |other| other.choice.spec == contender.choice.spec } if first == contender
          first.name
        end

        def results
          pairs.zip(super).map do |(variant, contender), result|
            { "key" => variant.key, "warm" => variant.warm, "interpreter" => contender.interpreter.name,
              "allocator" => contender.choice.spec, **result }
          end
        end
      end

      # The progress of an experiment.
      class Progress < Benchmark::Progress
        private

        def line(scheduled, figures)
          format("culet: %s, %s, run %d: %.2f and %.2f s, %.0f MB together", scheduled.workload.name,
                 scheduled.choice.name, scheduled.run, *figures.values_at("gc_first_seconds", "gc_second_seconds"),
                 figures["total_pss_bytes"] / 1e6)
        end
      end

      # Executes the runs of a plan and makes the document.
      class Engine < Benchmark::Runner
        def initialize(plan:, **options) = super(plan: plan, document: Document.new(plan), **options)

        # @return [Hash] the document; "complete" is false after an interruption
        # @raise [Culet::Error] when a program cannot be started
        def call
          about = { "strings" => @plan.strings, "runs" => @plan.runs, "seed" => @plan.seed, "machine" => machine }
          super(about) do |scheduled|
            Run.new(contender: scheduled.choice, variant: scheduled.workload, strings: @plan.strings,
                    timeout_seconds: @plan.timeout_seconds, interruption: @interruption).call
          end
        end

        private

        def machine
          { "kernel" => File.read("/proc/sys/kernel/osrelease").chomp, "page_bytes" => Processes::Memory::PAGE_BYTES,
            "processors" => Etc.nprocessors }
        end
      end
    end
  end
end
