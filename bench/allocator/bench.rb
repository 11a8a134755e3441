# frozen_string_literal: true

# Benchmarks of the allocator alone: small programs (probes) that each put one pattern to an allocator, run under every
# contender in turn, and their figures beside the goals.
#
#   run --> Session --> Trial (one run of one probe under one contender)
#       --> Tables  <-- Result (one probe: every contender's figures, verdicts)
module AllocatorBench
  # The folder of the probes.
  PROBES = File.expand_path("probes", __dir__)
end

require "culet/tools/allocators"
%w[goal figure probe catalogue contender trial result session tables instructions instruction_table].each do |name|
  require_relative name
end
