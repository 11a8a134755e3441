# frozen_string_literal: true

require_relative "../errors"
require_relative "../benchmark/plan"
require_relative "compare/runner"
require_relative "compare/workload"

module Culet
  # Compares allocators on Ruby workloads.
  #
  #   Benchmark::Plan        workloads, candidates, number of runs, seed
  #   Runner      makes the runs in rounds and collects results and exclusions
  #   Run         one run of one candidate, measured by a Sampler
  #   Statistics  medians, intervals, paired ratios, verdicts
  #   Benchmark::Document    the result: printed by `--json`, read by every report
  module Compare
  end
end
