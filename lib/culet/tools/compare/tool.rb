# frozen_string_literal: true

module Culet
  module Compare
    # A helping program (Bundler, wrk), run to its end while its caller looks around.
    module Tool
      TICK_SECONDS = 0.05
      private_constant :TICK_SECONDS

      module_function

      # Runs a program in a process group of its own, without input. The block is called several times a second and
      # may raise to end it; nothing of the group is left running then.
      #
      # @param command [Array] as for Process.spawn
      # @param seconds [Numeric, nil] how long it may take
      # @return [Array(String, Process::Status)] what it wrote on both streams, and how it ended; the status is nil where
      #   it took too long and was ended
      # @raise [Errno::ENOENT] when there is no such program
      def run(*command, seconds: nil, **options, &block)
        reader, writer = IO.pipe
        pid = Process.spawn(*command, **options, pgroup: true, in: File::NULL, out: writer, err: writer)
        writer.close
        await(pid, reader, seconds, &block)
      ensure
        [reader, writer].compact.each(&:close)
      end

      def await(pid, reader, seconds)
        output = Thread.new { reader.read }
        waiter = Process.detach(pid)
        deadline = now + seconds if seconds
        until waiter.join(TICK_SECONDS)
          yield if block_given?
          break if deadline && now > deadline
        end
        waiter.alive? ? ["", nil] : [output.value, waiter.value]
      ensure
        if waiter&.alive?
          Process.kill("KILL", -pid)
          waiter.join
        end
        output&.kill
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      private_class_method :await, :now
    end
  end
end
