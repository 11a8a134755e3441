# frozen_string_literal: true

require "open3"

module ScopeReading
  # The C programs of this folder, compiled.
  class Programs
    # @param folder [String] where they are put; it must be there
    def initialize(folder) = @folder = folder

    # @param name [String] "heap" or "copy"
    # @return [String] the program; it is compiled when it is asked for first
    # @raise [Culet::Error] when that does not work
    def path(name)
      program = File.join(@folder, name)
      return program if File.exist?(program)

      # Without the no-builtin the compiler may take a malloc and its free away.
      text, status = Open3.capture2e({ "LD_PRELOAD" => nil }, "cc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-fno-builtin", "-pthread", "-o", program,
                                     File.join(__dir__, "#{name}.c"))
      raise Culet::Error, "#{name}.c does not compile: #{text.lines.last(3).join(" ").strip}" unless status.success?

      program
    rescue Errno::ENOENT
      raise Culet::Error, "there is no C compiler: install one, e.g. `apt-get install gcc libc6-dev`"
    end
  end
end
