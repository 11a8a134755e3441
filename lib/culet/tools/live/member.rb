# frozen_string_literal: true

require_relative "../../system/processes"
require_relative "figures"
require_relative "sharing"

module Culet
  module Live
    # One process of the tree: what stays the same, and what two moments are needed for.
    class Member
      # A title is read again after so many seconds, and at each moment of a process's first ones: servers set it after
      # the fork.
      TITLE_SECONDS = 10
      # Collections are counted over so many seconds.
      RATE_SECONDS = 60
      # An agent is asked again after so many seconds in which its process did nothing.
      AGENT_SECONDS = 15
      # Its answer has Ruby's counts as of the answer before, so it is asked twice after the process has run.
      QUESTIONS = 2
      RUBY = %r{/(?:libruby|ruby)[^/]*\z}
      private_constant :TITLE_SECONDS, :RATE_SECONDS, :AGENT_SECONDS, :QUESTIONS, :RUBY

      # @return [Integer]
      attr_reader :pid

      # @return [Processes::Stat::Reading]
      attr_reader :stat

      # @return [Figures] of its agent
      attr_reader :figures

      # @return [String]
      attr_reader :title

      # @param pid [Integer]
      # @return [Member, nil] nil when there is no such process, or none that has memory
      def self.find(pid)
        member = new(pid)
        return member if member.refresh

        member.close
        nil
      rescue *Processes::GONE_OR_FORBIDDEN
        nil
      end

      # @param pid [Integer]
      # @raise [SystemCallError] when there is no such process
      def initialize(pid)
        @pid = pid
        @file = Processes::Stat.new(pid)
        @figures = Figures.new(pid)
        @sharing = Sharing.new
        @first_seen = now
        @collections = []
        @questions = QUESTIONS
        @ruby = ruby?
      end

      # Reads the counters of the kernel.
      #
      # @return [Boolean] false when the process has ended
      def refresh
        reading = @file.read or return false
        @questions = QUESTIONS unless reading.equal?(@stat)
        @stat = reading
        read_title
        true
      end

      # @return [Boolean] whether the agent may have something new to answer
      def question? = @questions.positive? || now - @figures.asked_at > AGENT_SECONDS

      # Asks the agent.
      #
      # @return [BasicSocket, nil] as of Figures#ask
      def ask
        @questions -= 1
        @figures.ask
      end

      # @return [Boolean] whether it began after the sampler did
      def young? = now - @first_seen < TITLE_SECONDS

      # @param rollup [Processes::Rollups::Entry, nil] the last reading of smaps_rollup
      # @param copied [Float] as of Sharing#memory
      # @return [Hash{String => Integer}, nil] as of Sharing#memory; nil if there is no such reading
      def memory(rollup, copied)
        return unless rollup

        @sharing.note(rollup, @stat)
        @sharing.memory(@stat, copied)
      end

      # @return [Numeric] how much may have changed since the last reading of smaps_rollup; 0: nothing
      def change = @sharing.change(@stat)

      # @return [Float, nil] as of Sharing
      def copied = @sharing.copied

      # @return [Float, nil] collections per minute, over the last minute or since the sampler started
      def collections_per_minute
        count = @figures.last&.fetch("collections", nil) or return
        @collections << [now, count]
        @collections.shift while @collections.size > 2 && @collections.first.first < now - RATE_SECONDS
        (from, first), (to, last) = @collections.values_at(0, -1)
        (60 * (last - first) / (to - from)).round(1) if to > from
      end

      # @return [Boolean] whether culet/limit runs in it
      def limit? = @figures.last&.fetch("limit", 0) == 1

      # @param boot_time [Float] of the machine, in seconds since 1970
      # @return [Hash{String => Object}] what tells the process from others
      def identity(boot_time)
        { "pid" => @pid, "parent_pid" => @stat.parent_pid, "start_ticks" => @stat.start_ticks,
          "started_at" => @started_at ||= started_at(boot_time),
          "title" => @title, "ruby" => @ruby }
      end

      # @return [void]
      def close
        @file.close
        @figures.close
      end

      private

      def started_at(boot_time) = (boot_time + @stat.start_ticks.fdiv(Processes::Cpu::TICKS_PER_SECOND)).round(2)

      def read_title
        return if @title && !young? && now < @next_title

        identity = Processes::Identity.new(@pid)
        return if @title && identity.command_line.empty? # the process is ending

        @next_title = now + TITLE_SECONDS
        @title = identity.title unless @title && identity.command_line == @command_line
        @command_line = identity.command_line
      end

      def ruby?
        File.foreach("/proc/#{@pid}/maps", encoding: Encoding::BINARY).any? { |line| line.chomp.match?(RUBY) }
      rescue *Processes::GONE_OR_FORBIDDEN
        Processes::Identity.new(@pid).names.any? { |name| name.start_with?("ruby") }
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
