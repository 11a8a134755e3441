# frozen_string_literal: true

require_relative "../errors"
require_relative "../benchmark/plan"
require_relative "compare/runner"
require_relative "compare/workload"

module Culet
  # Compares allocators on Ruby workloads.
  #
  #   Runner     makes the runs of a Benchmark::Plan; the result is a Benchmark::Document
  #   Run        one run of one candidate, measured by a Sampler
  #   Workload   a program to run; Bundle: its gems; Load: requests to it
  #   Report     the document as a table and a page
  module Compare
  end
end
