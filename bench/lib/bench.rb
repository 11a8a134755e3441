# frozen_string_literal: true

# The benchmarks of the allocator alone: small programs (probes) that each put one pattern to an allocator, run under
# every contender in turns, and their figures beside the goals.
#
#   CommandLine --> Session --> Trial (one run of one probe under one contender)
#               --> Report  <-- Result (one probe: every contender's figures, verdicts)
module Bench
  # The folder bench/.
  ROOT = File.expand_path("..", __dir__)
end

require "culet/tools/allocators"
require "culet/system/atomic_file"
require_relative "bench/goal"
require_relative "bench/figure"
require_relative "bench/probe"
require_relative "bench/catalogue"
require_relative "bench/contender"
require_relative "bench/build"
require_relative "bench/trial"
require_relative "bench/result"
require_relative "bench/session"
require_relative "bench/report"
require_relative "bench/instructions"
require_relative "bench/instruction_report"
require_relative "bench/command_line"
