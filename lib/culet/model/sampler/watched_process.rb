# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "../levels"
require_relative "agent_connection"
require_relative "sharing"

module Culet
  module Live
    # One process of the tree: what stays the same, what two moments are needed for, and its Hash in a moment.
    class WatchedProcess
      # Memory figures that add up.
      SUMS = %w[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes].freeze
      COUNTS = %w[minor_gcs major_gcs allocated_objects trims trim_returned_bytes].freeze
      UNKNOWN = SUMS.to_h { |name| [name, nil] }.freeze
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
      private_constant :COUNTS, :UNKNOWN, :TITLE_SECONDS, :RATE_SECONDS, :AGENT_SECONDS, :QUESTIONS, :RUBY

      attr_reader :pid, :title

      # @return [Processes::Stat::Reading]
      attr_reader :stat

      # @return [AgentConnection]
      attr_reader :agent

      # @param root [String] the folder that has /proc
      # @return [WatchedProcess, nil] nil when there is no such process, none that has memory, or a forked copy
      def self.find(pid, root: "/")
        return if Processes::Identity.new(pid).copy?

        process = new(pid, root: root)
        return process if process.refresh

        process.close
        nil
      rescue *Processes::GONE_OR_FORBIDDEN
        nil
      end

      # @param root [String] the folder that has /proc
      # @raise [SystemCallError] when there is no such process
      def initialize(pid, root: "/")
        @pid = pid
        @file = Processes::Stat.new(pid, root: root)
        @agent = AgentConnection.new(pid)
        @sharing = Sharing.new
        @first_seen = Clock.now
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
      def question? = @questions.positive? || Clock.now - @agent.asked_at > AGENT_SECONDS

      # Asks the agent.
      #
      # @return [BasicSocket, nil] as of AgentConnection#ask
      def ask
        @questions -= 1
        @agent.ask
      end

      # @return [Hash{String => Integer}, nil] as of AgentConnection#last
      def counters = @agent.last

      # @return [Numeric] how much may have changed since the last reading of smaps_rollup; 0: nothing
      def change = @sharing.change(@stat)

      # @return [Float, nil] as of Sharing
      def copied = @sharing.copied

      # @return [Boolean] whether culet/limit runs in it
      def limit? = counters&.fetch("limit", 0) == 1

      # The process in a moment of the sampler.
      #
      # @param rollup [Processes::Rollups::Entry, nil] the last reading of smaps_rollup
      # @param copied [Float] as of Sharing#memory
      # @return [Hash{String => Object}] the same object as the last time if nothing has changed
      def describe(rollup, copied)
        state = [collections_per_minute, rollup, @stat, counters, @title]
        return @description if state == @state

        @state = state
        @description = { **identity, **memory(rollup, copied), "cpu_seconds" => @stat.cpu_seconds,
                         "threads" => @stat.threads, "figures" => counters && figures(state.first) }.freeze
      end

      # @return [void]
      def close
        @file.close
        @agent.close
      end

      private

      # Whether it began after the sampler did.
      def young? = Clock.now - @first_seen < TITLE_SECONDS

      def identity
        { "pid" => @pid, "parent_pid" => @stat.parent_pid, "start_ticks" => @stat.start_ticks,
          "started_at" => @stat.started_at, "title" => @title, "ruby" => @ruby }
      end

      def memory(rollup, copied)
        return { **UNKNOWN, "rss_bytes" => @stat.resident_bytes } unless rollup

        @sharing.note(rollup, @stat)
        @sharing.memory(@stat, copied)
      end

      def figures(rate)
        live, slots = counters.values_at("live_slots", "slots")
        { "levels" => Levels.counted(@stat.resident_bytes, @stat.file_bytes, counters),
          **counters.slice("malloc_used_bytes", "malloc_free_bytes"), "live_slots" => live,
          "free_slots" => live && slots && [slots - live, 0].max, **COUNTS.to_h { |name| [name, counters[name]] },
          "gc_per_minute" => rate, "profile" => counters["profile"] == 1 }
      end

      # Over the last minute, or since the sampler started.
      #
      # @return [Float, nil] collections per minute
      def collections_per_minute
        count = counters&.fetch("collections", nil) or return
        @collections << [Clock.now, count]
        @collections.shift while @collections.size > 2 && @collections.first.first < Clock.now - RATE_SECONDS
        (from, first), (to, last) = @collections.values_at(0, -1)
        (60 * (last - first) / (to - from)).round(1) if to > from
      end

      def read_title
        return if @title && !young? && Clock.now < @next_title

        identity = Processes::Identity.new(@pid)
        return if @title && identity.command_line.empty? # the process is ending

        @next_title = Clock.now + TITLE_SECONDS
        @title = identity.title unless @title && identity.command_line == @command_line
        @command_line = identity.command_line
      end

      def ruby?
        File.foreach("/proc/#{@pid}/maps", encoding: Encoding::BINARY).any? { |line| line.chomp.match?(RUBY) }
      rescue *Processes::GONE_OR_FORBIDDEN
        Processes::Identity.new(@pid).names.any? { |name| name.start_with?("ruby") }
      end
    end
  end
end
