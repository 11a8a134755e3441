# frozen_string_literal: true

require "open3"

module StandardBench
  # The library whose malloc a program calls. The dynamic linker tells it, without running the program: it binds all
  # symbols, as for `ldd -r`, and prints which file has each.
  module Malloc
    TRACE = { "LD_TRACE_LOADED_OBJECTS" => "1", "LD_WARN" => "yes", "LD_BIND_NOW" => "yes",
              "LD_DEBUG" => "bindings" }.freeze
    BINDING = /binding file .* to (?<file>\S.*) \[\d+\]: normal symbol [`']malloc'/

    module_function

    # @param program [String] a path, or a name in PATH
    # @return [String, nil] path; nil where no file calls malloc
    def file(environment, program)
      text, = Open3.capture2e({ "RUBYOPT" => nil }.merge(environment, TRACE), program)
      text[BINDING, :file]
    end

    # @return [String, nil] path of the C library of this process
    def libc
      File.foreach("/proc/self/maps").filter_map { |line| line[%r{\s(/\S*/libc[.-][^/\s]*)$}, 1] }.first
    end
  end
end
