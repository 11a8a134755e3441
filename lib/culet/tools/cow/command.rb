# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../model/sharing/process_tree"
require_relative "history"

module Culet
  module Cow
    # Runs a command, samples its memory at regular intervals, and reads its process tree at intervals that double. The
    # last reading with forked processes is the result.
    class Command
      # Time of the first reading, and the interval of checks for a signal.
      FIRST_READING_SECONDS = 1.0
      STEP_SECONDS = 0.05
      # The command is killed this long after the signal.
      GRACE_SECONDS = 10
      private_constant :FIRST_READING_SECONDS, :STEP_SECONDS, :GRACE_SECONDS

      # @return [ProcessTree, nil] nil when the command ended before the first reading
      attr_reader :tree

      attr_reader :history

      # @return [Process::Status] of the command
      attr_reader :status

      # @param words [Array<String>] the command; it inherits input and output
      # @param every_seconds [Float] between samples
      # @param interruption [Interruption] its signal is forwarded
      # @param options [Hash] as for ProcessTree
      def initialize(words, every_seconds:, interruption:, **options)
        @words = words
        @every = every_seconds
        @interruption = interruption
        @options = options
      end

      # Runs the command to its end.
      #
      # @return [Command] itself
      # @raise [SystemCallError] when it cannot be started
      def call
        @pid = ::Process.spawn([@words.first, @words.first], *@words.drop(1))
        @history = History.new([@pid])
        observe until ended?
        self
      ensure
        give_up if @pid && @status.nil?
      end

      private

      def ended?
        _, @status = ::Process.wait2(@pid, ::Process::WNOHANG) unless @status
        !@status.nil?
      end

      def observe
        at = Clock.now
        @reading_at ||= at + FIRST_READING_SECONDS
        @sample_at ||= at
        sample(at) if at >= @sample_at
        read(at) if at >= @reading_at
        forward_signal
        sleep(STEP_SECONDS)
      end

      def sample(at)
        @history.take
        @sample_at = at + @every
      end

      # The intervals double, so that a long run is read a dozen times at most.
      def read(at)
        found = ProcessTree.new([@pid], **@options)
        @tree = found if @tree.nil? || found.read_members.any?(&:forked) || @tree.read_members.none?(&:forked)
        @wait = 2 * (@wait || FIRST_READING_SECONDS)
        @reading_at = at + @wait
      rescue Error
        # The command is ending: the last reading stands.
        @reading_at = at + FIRST_READING_SECONDS
      end

      # The terminal sends Ctrl-C to the command as well; other signals reach culet alone.
      def forward_signal
        return unless @interruption.requested?

        @asked_at ||= Clock.now.tap { ::Process.kill(@interruption.signal, @pid) unless @interruption.signal == "INT" }
        ::Process.kill(:KILL, @pid) if Clock.now > @asked_at + GRACE_SECONDS
      rescue Errno::ESRCH
        nil # the command has ended
      end

      def give_up
        ::Process.kill(:KILL, @pid)
        ::Process.wait(@pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil # the command has ended by itself
      end
    end
  end
end
