# frozen_string_literal: true

require "open3"

module ScopeBench
  # The C programs of this folder, compiled.
  class Programs
    # @param folder [String] an existing one for the programs
    def initialize(folder) = @folder = folder

    # @param name [String] "heap" or "copy"
    # @return [String] the program, compiled at the first call
    # @raise [Culet::Error] when it cannot be compiled
    def path(name)
      program = File.join(@folder, name)
      return program if File.exist?(program)

      # -fno-builtin: the compiler may otherwise remove a malloc and its free.
      text, status = Open3.capture2e({ "LD_PRELOAD" => nil }, "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-fno-builtin", "-pthread", "-o", program,
                                     File.join(__dir__, "#{name}.c"))
      raise Culet::Error, "#{name}.c does not compile: #{text.lines.last(3).join(" ").strip}" unless status.success?

      program
    rescue Errno::ENOENT
      raise Culet::Error, "there is no C compiler: install one, e.g. `apt-get install gcc libc6-dev`"
    end
  end
end
