# frozen_string_literal: true

require_relative "../../native"

module Culet
  module Trace
    # The compiled parts: the recorder, a library, and the program that replays.
    module Binaries
      RECORDER = "culet-trace.so"
      REPLAY = "culet-replay"

      module_function

      # @return [String] absolute path of the recorder
      # @raise [Culet::Error] when it is not built
      def recorder = find(RECORDER)

      # @return [String] absolute path of the program that replays
      # @raise [Culet::Error] when it is not built
      def replay = find(REPLAY)

      # In a checkout they are in trace/build, in an installed gem beside its other compiled files.
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
