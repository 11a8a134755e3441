# frozen_string_literal: true

require_relative "../errors"
require_relative "../benchmark/plan"
require_relative "replay/runner"

module Culet
  # Replays a trace of `culet trace` with any allocator, without the recorded program.
  #
  #   TraceFile       the trace, in place of a comparison's workload
  #   Program         one replay with one allocator, by the C program culet-replay
  #   Runner          all runs; the result has the form of a comparison's document
  #   Table           the report for a terminal
  module Replay
  end
end
