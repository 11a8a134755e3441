# frozen_string_literal: true

# The cost of the memory profile: culet without it, and with it at two distances, in turn.
#
#   run --> Probes (C loops, callgrind), Server and Program (built-in workloads), Samples (stacks of Ruby)
module ProfileBench
end

require "culet/tools/compare"
require_relative "../allocator/bench"
require_relative "../build"
%w[contender probes server program samples].each { |name| require_relative name }
