# frozen_string_literal: true

require_relative "../native"

module Culet
  module Scope
    # The compiled part: the program that reads a process.
    module Tool
      NAME = "culet-scope"

      module_function

      # A checkout has it in the folder it is built in, an installed gem with its other compiled files.
      #
      # @return [String] absolute path of the program
      # @raise [Culet::Error] when it is not built; the message says why and what to do
      def path
        root = Native.checkout
        built = root && File.join(root, "scope/build", NAME)
        return built if built && File.file?(built)

        Native.find("scope/#{NAME}") || raise(Error, Native.missing_reason("scope/#{NAME}"))
      end
    end
  end
end
