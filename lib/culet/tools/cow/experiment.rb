# frozen_string_literal: true

require_relative "experiment/engine"
require_relative "experiment/interpreter"
require_relative "experiment/plan"
require_relative "experiment/table"

module Culet
  module Cow
    # The copy-on-write experiment, for any interpreter and allocator: many small strings, a fork, two collections.
    #
    #   Interpreter  a program and its script; Contender: an interpreter on an allocator; Variant: the work of parent
    #                and child
    #   Plan         the runs, a Benchmark::Plan; Engine: executes it by Benchmark::Runner and makes the Document
    #   Run          one run of the script; both processes are measured after each phase
    #   Table        the document for a terminal
    module Experiment
    end
  end
end
