# frozen_string_literal: true

require "rbconfig"

module AllocatorBench
  # One probe: a program and its arguments.
  #
  # group: key of GROUPS; program: "NAME" for probes/NAME.c, or "NAME.rb"; arguments: NAME=NUMBER parameters; tiny:
  # those for the shortest run; runs: of each contender unless --runs; timeout: seconds; memory: bytes that must be
  # available
  Probe = Struct.new(:name, :group, :about, :program, :arguments, :tiny, :figures, :runs, :timeout, :memory,
                     keyword_init: true) do
    def ruby? = program.end_with?(".rb")

    # @param built [String] the folder of the built C probes
    # @param tiny [Boolean] whether to run it with its smallest parameters
    def command(built:, tiny: false)
      start = ruby? ? [RbConfig.ruby, File.join(PROBES, program)] : [File.join(built, program)]
      start + (tiny ? merged(arguments, self.tiny) : arguments)
    end

    private

    # The last argument on a name wins.
    def merged(*lists)
      lists.flatten.to_h { |argument| argument.split("=", 2) }.map { |name, number| "#{name}=#{number}" }
    end
  end
end
