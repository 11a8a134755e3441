# frozen_string_literal: true

require "json"
require_relative "command"
require_relative "../allocators"

module Culet
  module CLI
    # `culet lib`: the allocator's absolute path, alone on stdout.
    class Lib < Command
      def banner = "culet lib"

      def examples
        ["LD_PRELOAD=$(culet lib) ruby app.rb"]
      end

      def execute(words, command)
        raise UsageError, "`culet lib` takes no arguments; it prints the path of libculet.so" if command || !words.empty?

        path = Allocators.culet_library
        deliver(options[:json] ? JSON.generate(path: path) : path)
        EXIT_OK
      end
    end
  end
end
