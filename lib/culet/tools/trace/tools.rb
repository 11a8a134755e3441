# frozen_string_literal: true

require_relative "../../native"

module Culet
  module Trace
    # The compiled parts: the recorder, a library, and the player, a program.
    module Tools
      RECORDER = "culet-trace.so"
      PLAYER = "culet-replay"

      module_function

      # @return [String] absolute path of the library that records
      # @raise [Culet::Error] when it is not built; the message says why and what to do
      def recorder = find(RECORDER)

      # @return [String] absolute path of the program that replays
      # @raise [Culet::Error] when it is not built
      def player = find(PLAYER)

      # A checkout has them in the folder they are built in, an installed gem with its other compiled files.
      def find(file)
        root = Native.checkout
        built = root && File.join(root, "trace/build", file)
        return built if built && File.file?(built)

        Native.find("trace/#{file}") || raise(Error, Native.missing_reason("trace/#{file}"))
      end
      private_class_method :find
    end
  end
end
