# frozen_string_literal: true

require_relative "../../lib/culet/native"

module Culet
  # What loads, measures and counts the code of a program. It has an extension of its own, which a program that asks for
  # memory alone does not load.
  #
  # @api private
  module Boot
    EXTENSION = "culet_boot.so"
    private_constant :EXTENSION

    module_function

    # @return [Boolean] whether the extension is loaded, which the first call tries
    def native? = Native.load(EXTENSION)

    # @return [String] one sentence: why it is not
    def missing_reason = Native.missing_reason(EXTENSION)
  end
end
