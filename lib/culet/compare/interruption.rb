# frozen_string_literal: true

require_relative "exclusion"

module Culet
  module Compare
    # Turns the signals that end a program into a wish that the engine looks at
    # between two steps, so that the run under way is ended cleanly and what is
    # complete is still reported. The second signal asks for haste.
    class Interruption
      SIGNALS = %w[INT TERM HUP].freeze

      def initialize
        @count = 0
        @signal = nil
      end

      # Catches the signals while the block runs and restores what they did before.
      #
      # @yield
      # @return the block's value
      def watch
        before = SIGNALS.to_h { |name| [name, trap(name) { note(name) }] }
        yield
      ensure
        before&.each { |name, handler| trap(name, handler || "DEFAULT") }
      end

      # @return [Boolean] whether the user asked to stop
      def requested? = @count.positive?

      # @return [Boolean] whether the user asked twice: no waiting for a process to end by itself
      def urgent? = @count > 1

      # @return [String, nil] the first signal's name, e.g. "INT"
      attr_reader :signal

      # @raise [Interrupted] when the user asked to stop
      def check
        raise Interrupted, "interrupted by SIG#{signal}" if requested?
      end

      private

      # Runs in a trap handler: no locks, no output.
      def note(name)
        @signal ||= name
        @count += 1
      end
    end
  end
end
