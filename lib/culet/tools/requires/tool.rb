# frozen_string_literal: true

require_relative "../../native"

module Culet
  module Requires
    # The parts that are put into a program: a library that is preloaded, a Ruby file that is required first.
    module Tool
      COUNTER = "culet-syscall-counter.so"

      module_function

      # A checkout has it in the folder it is built in, an installed gem with its other compiled files.
      #
      # @return [String] absolute path of the library that counts calls
      # @raise [Culet::Error] when it is not built, or cannot be written in LD_PRELOAD
      def counter
        root = Native.checkout
        built = root && File.join(root, "syscall_counter/build", COUNTER)
        built = Native.find("syscall_counter/#{COUNTER}") unless built && File.file?(built)
        sound(built || raise(Error, Native.missing_reason("syscall_counter/#{COUNTER}")))
      end

      # The word of RUBYOPT that loads one of our files. By its path, so that $LOAD_PATH has no entry more.
      #
      # @param file [String] relative to lib/culet
      # @return [String]
      # @raise [Culet::Error] when its path cannot be written there
      def loading(file) = "-r#{sound(File.expand_path("../../#{file}", __dir__))}"

      def sound(path)
        return path unless path.match?(/[\s:]/)

        raise Error, "#{path} cannot be put into a program, because spaces and colons separate the words of LD_PRELOAD and RUBYOPT; " \
                     "put it where the path has none"
      end
      private_class_method :sound
    end
  end
end
