# frozen_string_literal: true

require_relative "exclusion"

module Culet
  module Compare
    # Turns the signals that end a program into a wish that the engine looks at
    # between two steps, so that the run under way is ended cleanly and what is
    # complete is still reported. A run is ended by SIGKILL, so there is nothing that a
    # second signal could hasten; what comes after the runs is ended by it as usual.
    class Interruption
      SIGNALS = %w[INT TERM HUP].freeze

      def initialize
        @signal = nil
      end

      # Catches the signals while the block runs and restores what they did before.
      #
      # @yield
      # @return the block's value
      def watch
        before = SIGNALS.to_h { |name| [name, trap(name) { note(name) }] }
        # Who started us with a signal ignored (nohup) wants it ignored.
        before.each { |name, handler| trap(name, handler) if handler == "IGNORE" }
        yield
      ensure
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
      end

      # @return [Boolean] whether the user asked to stop
      def requested? = !@signal.nil?

      # @return [String, nil] the first signal's name, e.g. "INT"
      attr_reader :signal

      # @return [Integer, nil] the exit status that a shell would have for a program that the signal ended
      def exit_status = signal && (128 + Signal.list.fetch(signal))

      # @raise [Interrupted] when the user asked to stop
      def check
        raise Interrupted, "interrupted by SIG#{signal}" if requested?
      end

      private

      # Runs in a trap handler: no locks, no output.
      def note(name)
        @signal ||= name
      end
    end
  end
end
