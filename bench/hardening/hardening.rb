# frozen_string_literal: true

# Small attacks on every allocator: programs with memory errors that an attacker uses, each in a process of its own, and
# the share of them that has no effect.
#
#   run --> Attack (a row of a program's table) --> Attempt (one process) --> Verdict (all attempts of a contender)
#       --> Tables
module HardeningBench
end

require_relative "../allocator/bench"
%w[attack attempt verdict contenders tables].each { |name| require_relative name }
