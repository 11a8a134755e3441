# frozen_string_literal: true

# says: a finalizer that keeps its own object
# shape: small, single
# growth: 15
require_relative "../../load"

class Upload
  def initialize
    @text = "upload ".ljust(10_000, "x")
    ObjectSpace.define_finalizer(self, proc { @text.clear }) # HERE
  end
end
Load.run(every: 0.04) { Upload.new }
