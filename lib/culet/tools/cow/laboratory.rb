# frozen_string_literal: true

require_relative "laboratory/contender"
require_relative "laboratory/engine"
require_relative "laboratory/interpreter"
require_relative "laboratory/plan"
require_relative "laboratory/table"

module Culet
  module Cow
    # The classical experiment, on any interpreter and allocator: many little strings, a fork, two garbage collections.
    #
    #   Interpreter  a program and its script; Contender: one on an allocator; Variant: what is done
    #   Plan         who, what and how often; Engine: makes the runs in turns, and the document
    #   Run          the script once, both processes looked at after each phase
    #   Table, Page  the document for a terminal, as HTML
    module Laboratory
    end
  end
end
