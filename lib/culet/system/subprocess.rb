# frozen_string_literal: true

require_relative "clock"

module Culet
  # Runs a helper program to its end.
  #
  # @api private
  module Subprocess
    TICK_SECONDS = 0.05
    private_constant :TICK_SECONDS

    module_function

    # Runs a program in its own process group, without input. The block is called several times a second; when it
    # raises, the group is killed.
    #
    # @param command [Array] as for Process.spawn
    # @param seconds [Numeric, nil] time limit
    # @param options [Hash] as for Process.spawn
    # @return [Array(String, Process::Status)] its output, with its error output unless `err:` leads elsewhere, and its
    #   status; nil after the time limit
    # @raise [Errno::ENOENT] when the program does not exist
    def run(*command, seconds: nil, **options, &block)
      reader, writer = IO.pipe
      pid = Process.spawn(*command, err: writer, **options, pgroup: true, in: File::NULL, out: writer)
      writer.close
      await(pid, reader, seconds, &block)
    ensure
      [reader, writer].compact.each(&:close)
    end

    def await(pid, reader, seconds)
      output = Thread.new { reader.read }
      waiter = Process.detach(pid)
      deadline = Clock.now + seconds if seconds
      until waiter.join(TICK_SECONDS)
        yield if block_given?
        break if deadline && Clock.now > deadline
      end
      waiter.alive? ? ["", nil] : [output.value, waiter.value]
    ensure
      if waiter&.alive?
        Process.kill("KILL", -pid)
        waiter.join
      end
      output&.kill
    end
    private_class_method :await
  end
end
