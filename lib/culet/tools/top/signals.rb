# frozen_string_literal: true

module Culet
  module Top
    # Signals as events: their names come out of a pipe, for the loop that waits for keys too.
    class Signals
      # They end the view.
      ENDING = %w[INT TERM HUP QUIT].freeze
      NAMES = [*ENDING, "WINCH", "TSTP", "CONT"].freeze
      # The pipe's reader takes so many bytes at once.
      MOST_BYTES = 1024
      private_constant :NAMES, :MOST_BYTES

      # @return [IO] readable when a signal has come
      attr_reader :io

      # Catches the signals during the block.
      #
      # @return the block's value
      def watch
        @io, @writer = IO.pipe
        before = NAMES.each_with_index.to_h { |name, index| [name, trap(name) { note(index) }] }
        # Programs are started with an ignored signal by nohup, and by shells without job control.
        before.each { |name, handler| trap(name, handler) if handler == "IGNORE" }
        yield
      ensure
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
        [@io, @writer].compact.each(&:close)
      end

      # @return [Array<String>] those that have come, without "SIG"
      def take
        bytes = @io.read_nonblock(MOST_BYTES, exception: false)
        bytes.is_a?(String) ? bytes.bytes.map { |index| NAMES.fetch(index) }.uniq : []
      end

      # Stops this process as Ctrl-Z does; returns when it continues.
      def stop
        handler = trap("TSTP", "SYSTEM_DEFAULT")
        ::Process.kill("TSTP", ::Process.pid)
      ensure
        trap("TSTP", handler)
      end

      private

      # In a trap: no locks. A full pipe has enough to read.
      def note(index) = @writer.write_nonblock(index.chr, exception: false)
    end
  end
end
