# frozen_string_literal: true

require "io/console"
require "io/wait"

module Culet
  module Top
    # The terminal while the view is on it: its alternate screen, without a cursor, without line editing and echo. Keys
    # such as Ctrl-C and Ctrl-Z still send their signals.
    class Terminal
      # Private modes of xterm: alternate screen, autowrap off (a title of doubtful width must not reach the next line),
      # cursor hidden; and cleared.
      ENTER = "\e[?1049h\e[?7l\e[?25l\e[H\e[2J"
      LEAVE = "\e[0m\e[?25h\e[?7h\e[?1049l"
      # Size of a terminal that does not report one.
      DEFAULT_SIZE = [24, 80].freeze
      # Bytes of keys at once.
      MOST_BYTES = 1024
      # Errors of a terminal that has been closed.
      GONE = [Errno::EIO, Errno::ENXIO, Errno::EPIPE, EOFError].freeze
      private_constant :ENTER, :LEAVE, :DEFAULT_SIZE, :MOST_BYTES, :GONE

      # The terminal is gone.
      class Gone < StandardError; end

      # @return [IO]
      attr_reader :console

      # @param console [IO] the terminal, for reading and writing
      def initialize(console)
        @console = console
        @lines = []
      end

      # Shows the view during the block, and leaves the terminal as it was.
      #
      # @return the block's value
      def open
        enter
        yield
      ensure
        leave
      end

      # Takes the terminal, also again after the process was stopped.
      def enter
        guarded do
          @mode ||= @console.console_mode
          @console.raw!(intr: true)
          write(ENTER)
        end
        @lines = []
      end

      # @return [void]
      def leave
        return unless @mode

        guarded do
          write(LEAVE)
          @console.console_mode = @mode
        end
      rescue Gone
        nil # there is nothing to restore
      ensure
        @mode = nil
      end

      # @return [Array(Integer, Integer)] rows and columns
      def size = guarded { @console.winsize }.then { |size| size.all?(&:positive?) ? size : DEFAULT_SIZE }

      # Writes the lines that have changed, at once.
      #
      # @param lines [Array<String>] one for each row
      def draw(lines)
        text = lines.each_with_index.map { |line, row| "\e[#{row + 1};1H\e[2K#{line}" unless line == @lines[row] }.join
        @lines = lines
        guarded { write(text) } unless text.empty?
      end

      # The next `draw` writes every line.
      def redraw
        @lines = []
        guarded { write("\e[2J") }
      end

      # @return [String] the bytes of the keys that were pressed; "" for none
      def read = guarded { @console.read_nonblock(MOST_BYTES, exception: false) }.then { |text| keys(text) }

      private

      def keys(text)
        raise Gone if text.nil?

        text == :wait_readable ? "" : text
      end

      def write(text)
        @console.write(text)
        @console.flush
      end

      def guarded
        yield
      rescue *GONE
        raise Gone
      end
    end
  end
end
