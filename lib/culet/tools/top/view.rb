# frozen_string_literal: true

require_relative "history"
require_relative "keys"
require_relative "notes"
require_relative "readings"
require_relative "screen"
require_relative "signals"
require_relative "state"
require_relative "terminal"

module Culet
  module Top
    # The view on a terminal: shows each moment until a key or a signal ends it, or the processes have ended.
    class View
      # How long the rest of a key may take, in seconds: Escape is also the first byte of other keys.
      KEY_SECONDS = 0.05
      private_constant :KEY_SECONDS

      # @param sampler [#call] returns a moment; nil when all processes have ended
      # @param console [IO] the terminal
      # @param every [Numeric] seconds from one reading to the next
      # @param color [Boolean] whether to use styles
      def initialize(sampler, console:, every:, color:)
        @sampler = sampler
        @terminal = Terminal.new(console)
        @every = every
        @state = State.new
        @screen = Screen.new(@state, color: color)
        @history = History.new
        @notes = Notes.new
        @keys = Keys.new
        @signals = Signals.new
      end

      # @return [Symbol, String] :quit, :ended (the processes), or the name of the signal that ended the view
      def call
        @signals.watch do
          @terminal.open do
            @readings = Readings.new(@sampler, every: @every)
            loop { (outcome = step) && (return outcome) }
          ensure
            @readings&.close
          end
        end
      rescue Terminal::Gone
        "HUP"
      end

      private

      # @return [Symbol, String, nil] as of `call`; nil: go on
      def step
        ready = IO.select([@terminal.console, @signals.io, @readings.io], nil, nil, (KEY_SECONDS if @keys.pending?))
        outcome = signals || moments || press(ready ? @keys.feed(@terminal.read) : @keys.flush)
        draw unless outcome
        outcome
      end

      def signals
        names = @signals.take
        ending = names.find { |name| Signals::ENDING.include?(name) }
        return ending if ending

        stop if names.include?("TSTP")
        # The shell may have changed the terminal while the process was stopped.
        @terminal.enter if names.include?("CONT")
        @terminal.redraw if names.include?("WINCH")
        nil
      end

      def stop
        @terminal.leave
        @signals.stop
        @terminal.enter
      end

      def moments
        @readings.take.each do |moment|
          return :ended if moment.nil?

          @history.add(moment["events"])
          @latest = moment
        end
        nil
      end

      def press(keys)
        keys.each { |key| return :quit if @state.press(key, sortable: @screen.sortable || [:pss]) }
        nil
      end

      def draw
        @shown = @latest unless @state.paused? && @shown
        return unless @shown

        rows, columns = @terminal.size
        notes = @notes.call(@shown)
        @terminal.draw(@screen.frame(@shown, rows: rows, columns: columns, history: @history, notes: notes))
      end
    end
  end
end
