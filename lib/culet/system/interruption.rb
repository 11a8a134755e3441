# frozen_string_literal: true

require "io/wait"
require_relative "../errors"
require_relative "clock"

module Culet
  # The user pressed Ctrl-C, or sent a terminating signal.
  class Interrupted < Error; end

  # Records terminating signals, for the runner to check between steps: the current run is stopped cleanly, and
  # complete results are reported.
  class Interruption
    SIGNALS = %w[INT TERM HUP].freeze

    def initialize
      @signal = nil
      @waker, @wake = IO.pipe
    end

    # Catches the signals during the block and restores the previous handlers.
    #
    # @return the block's value
    def watch
      before = SIGNALS.to_h { |name| [name, trap(name) { note(name) }] }
      # nohup starts programs with an ignored signal.
      before.each { |name, handler| trap(name, handler) if handler == "IGNORE" }
      yield
    ensure
      before&.each { |name, handler| trap(name, handler || "DEFAULT") }
    end

    # Sleeps until a signal arrives, or has arrived before.
    #
    # @param seconds [Float] the longest sleep
    # @return [Boolean] whether one did
    def wait(seconds) = !@waker.wait_readable(seconds).nil?

    # Calls the block at regular times until it returns false or the time is over; times that pass during a call are
    # left out. A signal ends a pause, not the calls.
    #
    # @param every [Float, nil] seconds from one call to the next; nil: only one call
    # @param most [Float, nil] seconds from the first call to the last; nil: without a limit
    def at_intervals(every, most = nil)
      start = Clock.now
      count = 0
      while yield
        break if every.nil?

        count = [count + 1, ((Clock.now - start) / every).ceil].max
        break if most && count * every > most

        wait([start + (count * every) - Clock.now, 0].max)
      end
    end

    # @return [Boolean] whether a signal arrived
    def requested? = !@signal.nil?

    # @return [String, nil] the first signal's name, e.g. "INT"
    attr_reader :signal

    # @return [Integer, nil] the status that a shell reports for a process killed by the signal
    def exit_status = signal && (128 + Signal.list.fetch(signal))

    # @raise [Interrupted] when a signal arrived
    def check
      raise Interrupted, "interrupted by SIG#{signal}" if requested?
    end

    private

    # Runs in a trap handler: no locks, no output.
    def note(name)
      @signal ||= name
      @wake.write_nonblock(".", exception: false)
    end
  end
end
