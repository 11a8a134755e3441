# frozen_string_literal: true

require_relative "../errors"
require_relative "allocators"
require_relative "../system/processes"
require_relative "compare/statistics"
require_relative "compare/plan"
require_relative "compare/engine"

module Culet
  # Measures allocators against each other on Ruby workloads.
  #
  #   Plan        what is to be measured: workloads, contenders, runs, seed
  #   Engine      every contender in turns; gathers runs and exclusions
  #   Trial       one run of one contender, watched by a Sampler
  #   Statistics  medians, intervals, paired ratios, verdicts
  #   Document    the result, as `--json` prints it and the reports read it
  module Compare
  end
end
