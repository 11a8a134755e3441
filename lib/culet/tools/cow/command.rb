# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../system/foreground"
require_relative "../../model/sharing/process_tree"
require_relative "history"

module Culet
  module Cow
    # Runs a command, samples its memory at regular intervals, and reads its process tree at intervals that double. The
    # last reading with forked processes is the result.
    class Command
      # Time of the first reading, and the interval of looks at the clock.
      FIRST_READING_SECONDS = 1.0
      STEP_SECONDS = 0.05
      private_constant :FIRST_READING_SECONDS, :STEP_SECONDS

      # @return [ProcessTree, nil] nil when the command ended before the first reading
      attr_reader :tree

      attr_reader :history

      # @return [Process::Status] of the command
      attr_reader :status

      # @param words [Array<String>] the command; it inherits input and output
      # @param program [String] path of the program
      # @param every_seconds [Float] between samples
      # @param options [Hash] as for ProcessTree
      def initialize(words, program:, every_seconds:, **options)
        @foreground = Foreground.new({}, program, words)
        @every = every_seconds
        @options = options
      end

      # Runs the command to its end.
      #
      # @return [Command] itself
      # @raise [SystemCallError] when it cannot be started
      def call
        @status = @foreground.call { observe(@foreground.pid) }
        self
      end

      private

      def observe(pid)
        @history ||= History.new([pid])
        at = Clock.now
        @reading_at ||= at + FIRST_READING_SECONDS
        @sample_at ||= at
        sample(at) if at >= @sample_at
        read(at) if at >= @reading_at
        sleep(STEP_SECONDS)
      end

      def sample(at)
        @history.take
        @sample_at = at + @every
      end

      # The intervals double, so that a long run is read a dozen times at most.
      def read(at)
        found = ProcessTree.new([@foreground.pid], **@options)
        @tree = found if @tree.nil? || found.read_members.any?(&:forked) || @tree.read_members.none?(&:forked)
        @wait = 2 * (@wait || FIRST_READING_SECONDS)
        @reading_at = at + @wait
      rescue Error
        # The command is ending: the last reading stands.
        @reading_at = at + FIRST_READING_SECONDS
      end
    end
  end
end
