# frozen_string_literal: true

# The cost of the memory profile: culet without it, and with it at two distances, in turn.
#
#   run --> Probes (C loops, callgrind), BuiltInServer and Program (workloads), Samples (stacks of Ruby)
module ProfileBench
end

require_relative "../allocator/bench"
require_relative "../build"
require_relative "../built_in_server"
%w[contender probes program samples].each { |name| require_relative name }
