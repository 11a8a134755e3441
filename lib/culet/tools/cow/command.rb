# frozen_string_literal: true

require_relative "../../errors"
require_relative "family"
require_relative "history"

module Culet
  module Cow
    # A command of the user's, looked at for as long as it runs: the kernel's figures at regular times, and whole readings
    # at longer and longer intervals, of which the last one that found forked processes counts.
    class Command
      # The first whole reading, and how often a wish to stop is looked for, in seconds.
      FIRST_READING_SECONDS = 1.0
      STEP_SECONDS = 0.05
      # How long the command may take to end after it was asked to.
      GRACE_SECONDS = 10
      private_constant :FIRST_READING_SECONDS, :STEP_SECONDS, :GRACE_SECONDS

      # @return [Family, nil] nil when it ended before it could be read
      attr_reader :family

      # @return [History]
      attr_reader :history

      # @return [Process::Status] how it ended
      attr_reader :status

      # @param words [Array<String>] the command; it has our input and output
      # @param every_seconds [Float] from one sample to the next
      # @param interruption [Compare::Interruption] whose signal is passed on
      # @param options [Hash] how processes are read, as for Family
      # @raise [Culet::Error] when it cannot be started
      def initialize(words, every_seconds:, interruption:, **options)
        @words = words
        @every = every_seconds
        @interruption = interruption
        @options = options
      end

      # Runs it to its end.
      #
      # @return [Command] itself
      def call
        @pid = start
        @history = History.new([@pid])
        observe until ended?
        self
      ensure
        give_up if @pid && @status.nil?
      end

      private

      def start
        ::Process.spawn([@words.first, @words.first], *@words.drop(1))
      rescue SystemCallError => e
        raise Error, "cannot run #{@words.first}: #{e.is_a?(Errno::ENOENT) ? "no such program" : e.message.sub(/ - .*/, "").downcase}"
      end

      def ended?
        _, @status = ::Process.wait2(@pid, ::Process::WNOHANG) unless @status
        !@status.nil?
      end

      def observe
        at = now
        @reading_at ||= at + FIRST_READING_SECONDS
        @sample_at ||= at
        sample(at) if at >= @sample_at
        read(at) if at >= @reading_at
        pass_on
        sleep(STEP_SECONDS)
      end

      def sample(at)
        @history.take
        @sample_at = at + @every
      end

      # Each time twice as long to the next, so that a long run is not read more than a dozen times.
      def read(at)
        found = Family.new([@pid], **@options)
        @family = found if @family.nil? || found.read_members.any?(&:forked) || @family.read_members.none?(&:forked)
        @wait = 2 * (@wait || FIRST_READING_SECONDS)
        @reading_at = at + @wait
      rescue Error
        # It was about to end, and what was read before stands.
        @reading_at = at + FIRST_READING_SECONDS
      end

      # Ctrl-C reaches the command by itself; a signal for us alone does not.
      def pass_on
        return unless @interruption.requested?

        @asked_at ||= now.tap { ::Process.kill(@interruption.signal, @pid) unless @interruption.signal == "INT" }
        ::Process.kill(:KILL, @pid) if now > @asked_at + GRACE_SECONDS
      rescue Errno::ESRCH
        nil # it has ended
      end

      def give_up
        ::Process.kill(:KILL, @pid)
        ::Process.wait(@pid)
      rescue Errno::ESRCH, Errno::ECHILD
        nil # it has ended by itself
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
