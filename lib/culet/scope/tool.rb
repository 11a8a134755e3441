# frozen_string_literal: true

require_relative "../native"

module Culet
  module Scope
    # The compiled part: the program that reads a process.
    module Tool
      NAME = "culet-scope"

      module_function

      # @return [String] absolute path of the program
      # @raise [Culet::Error] when it is not built; the message says why and what to do
      def path = Native.part("scope", NAME)
    end
  end
end
