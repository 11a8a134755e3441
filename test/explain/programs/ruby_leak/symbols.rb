# frozen_string_literal: true

# says: a method is defined for each name that a request brings
# shape: small, single
# growth: 10
require_relative "../../load"

class Visitor; end
number = 0
Load.run(every: 0.05) do
  5.times { Visitor.define_method("visited_#{number += 1}_#{"x" * 400}") { number } } # HERE
  Load.work(number)
end
