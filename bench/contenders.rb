# frozen_string_literal: true

require "culet/allocators"
require "culet/model/statistics"

# Runs of the same programs under several allocators, in turn; bench/allocator and bench/standard use it.
#
#   Session --> Execution (one process) --> Outcome --> Result (one subject: the runs of every contender)
#           --> Tables
module Bench
  # The figures of a run, or the reason why it does not count.
  Outcome = Struct.new(:figures, :reason)
end

%w[contender figure execution result session tables].each { |name| require_relative "contenders/#{name}" }
