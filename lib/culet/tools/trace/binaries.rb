# frozen_string_literal: true

require_relative "../../native"

module Culet
  module Trace
    # The compiled parts: the libraries that record and sample malloc, and the program that replays.
    module Binaries
      RECORDER = "culet-trace.so"
      SAMPLER = "culet-sampler.so"
      REPLAY = "culet-replay"

      module_function

      # @return [String] absolute path of the recorder
      # @raise [Culet::Error] when it is not built, or cannot be preloaded
      def recorder = preloadable(find(RECORDER))

      # @return [String] absolute path of the sampler of the memory profile
      # @raise [Culet::Error] when it is not built, or cannot be preloaded
      def sampler = preloadable(find(SAMPLER))

      # @return [String] absolute path of the program that replays
      # @raise [Culet::Error] when it is not built
      def replay = find(REPLAY)

      def find(file) = Native.part("trace", file)
      private_class_method :find

      def preloadable(path)
        return path unless path.match?(/[\s:]/)

        raise Error, "cannot preload #{path}: spaces and colons separate the entries of LD_PRELOAD; " \
                     "install culet at a path without them"
      end
      private_class_method :preloadable
    end
  end
end
