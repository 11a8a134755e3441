# frozen_string_literal: true

require_relative "../errors"
require_relative "allocators"
require_relative "../system/processes"
require_relative "compare/statistics"
require_relative "compare/plan"
require_relative "compare/runner"

module Culet
  # Compares allocators on Ruby workloads.
  #
  #   Plan        workloads, candidates, number of runs, seed
  #   Runner      makes the runs in rounds and collects results and exclusions
  #   Run         one run of one candidate, measured by a Sampler
  #   Statistics  medians, intervals, paired ratios, verdicts
  #   Document    the result: printed by `--json`, read by every report
  module Compare
  end
end
