# frozen_string_literal: true

require_relative "../../native"

module Culet
  module Requires
    # The parts loaded into a program: a preloaded library and a Ruby file that is required first.
    module Tool
      COUNTER = "culet-syscall-counter.so"

      module_function

      # @return [String] absolute path of the syscall counter
      # @raise [Culet::Error] when it is not built, or its path does not fit into LD_PRELOAD
      def counter = sound(Native.part("syscall_counter", COUNTER))

      # The word of RUBYOPT that loads a file of culet, by its path, so that $LOAD_PATH stays the same.
      #
      # @param file [String] relative to lib/culet
      # @return [String]
      # @raise [Culet::Error] when its path does not fit into RUBYOPT
      def loading(file) = "-r#{sound(File.expand_path("../../#{file}", __dir__))}"

      def sound(path)
        return path unless path.match?(/[\s:]/)

        raise Error, "#{path} cannot be loaded into a program: " \
                     "spaces and colons separate the words of LD_PRELOAD and RUBYOPT; " \
                     "move it to a path without them"
      end
      private_class_method :sound
    end
  end
end
