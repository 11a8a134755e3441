# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "../../model/diagnosis"
require_relative "../../model/retention/growth"
require_relative "../../model/retention/reading"
require_relative "../../model/sampler"
require_relative "../../model/sharing/process_tree"
require_relative "../../scope/reader"

module Culet
  module Explain
    # Watches a process tree: the kernel's counters every second, the whole memory of its largest processes now and
    # then, and what their holders keep, where an agent can be asked.
    class Watch
      TICK_SECONDS = 1.0
      # Processes that are read again and again, the largest first: workers of one kind are alike.
      FOCUS = 2
      # Readings of each of them: at most; and at least, however large it is, for a trend.
      MOST_READINGS = 18
      LEAST_READINGS = Trend::LEAST_POINTS + 1
      # A reading pauses the process, in slices. It rests a hundred times as long.
      REST_PER_PAUSE = 100
      # Looks at holders; a look forks the process.
      LOOKS = Retention::Growth::LOOKS
      # A process whose look took longer, in seconds, is not looked at again and again.
      MOST_LOOK_SECONDS = 5.0
      private_constant :TICK_SECONDS, :FOCUS, :MOST_READINGS, :LEAST_READINGS, :REST_PER_PAUSE, :LOOKS,
                       :MOST_LOOK_SECONDS

      # @param root [Integer] process number of the tree's first process
      # @param seconds [Float] how long to watch
      # @param interruption [Interruption] ends the watch early
      # @param session [Object, nil] responds to `finish`, with Profile::Data and Profile::Growth, where the processes
      #   carry a profile
      # @yield [String] a line for the user
      def initialize(root, seconds:, interruption:, session: nil, &note)
        @root = root
        @seconds = seconds
        @interruption = interruption
        @session = session
        @note = note
        @problems = []
        @moments = []
        @looks = []
      end

      # @return [Diagnosis::Observation]
      # @raise [Culet::Error] when the tree's first process does not exist, may not be read, or ends at once
      def call
        @sampler = Live::Sampler.new([@root])
        @start = Clock.now
        follow
        profile, growth = @session&.finish
        observation(profile, growth)
      ensure
        @sampler&.close
      end

      private

      def elapsed = Clock.now - @start

      def follow
        tick
        choose
        until over?
          @processes.each { |process| read(process) if reading_due?(process) }
          look if look_due?
          break if @interruption.wait([[@next_tick, *@due.values, @seconds].min - elapsed, 0].max)

          tick if elapsed >= @next_tick
        end
        @processes.each { |process| read(process) unless gone?(process.pid) }
      end

      def over? = elapsed >= @seconds || gone?(@root)

      def gone?(pid) = [nil, "Z", "X"].include?(Processes::Cpu.state(pid))

      def tick
        @next_tick = elapsed + TICK_SECONDS
        moment = @sampler.call or return
        @moments << moment
      end

      def choose
        raise Error, "process #{@root} ended before it could be read" if @moments.empty?

        largest = @moments.last["processes"].max_by(FOCUS) do |one|
          [one["ruby"] ? 1 : 0, one["private_bytes"] || one["rss_bytes"].to_i]
        end
        @processes = largest.map { |one| Diagnosis::ObservedProcess.new(one["pid"], one["title"]) }
        @due = @processes.to_h { |process| [process, 0.0] }
        @agent = @processes.find { |process| agent?(process) && @processes.first == process }
      end

      def agent?(process) = @moments.last["processes"].any? { |one| one["pid"] == process.pid && one["figures"] }

      def reading_due?(process) = elapsed >= @due.fetch(process)

      # A process that cannot be read is told of once, and not read again.
      def read(process)
        return if @due.fetch(process) == Float::INFINITY

        at = elapsed
        snapshot = Scope::Reader.new(process.pid, chunks: 0).snapshot
        process.add(at, snapshot)
        @due[process] = at + pause(snapshot)
      rescue Error => e
        @problems |= [e.message]
        @due[process] = Float::INFINITY
      end

      def pause(snapshot)
        paused = snapshot.reading.to_h.fetch("paused_seconds", 0) * REST_PER_PAUSE
        paused.clamp(@seconds / (MOST_READINGS - 1), @seconds / (LEAST_READINGS - 1))
      end

      def look_due? = @agent && @looks.size < LOOKS && elapsed >= @seconds * @looks.size / (LOOKS - 1)

      def look
        at = Clock.now
        analysis = Retention::Analysis.new(Retention::Reading.of_process(@agent.pid), name: @agent.title)
        @looks << Retention::Growth::Look.new(at, analysis)
        @agent = nil if Clock.now - at > MOST_LOOK_SECONDS && @looks.size == 1
      rescue Error => e
        @problems |= ["what keeps memory is not known: #{e.message}"]
        @agent = nil
      end

      def observation(profile, growth)
        tree = Cow::ProcessTree.new([@root])
        Diagnosis::Observation.new(seconds: elapsed, moments: @moments, processes: @processes.select(&:snapshot),
                                   tree: tree, collector: collector, retention: retention, profile: profile,
                                   growth: growth, server: server(tree), problems: @problems | tree.problems)
      end

      def retention = (Retention::Growth.new(@looks) if @looks.size >= LEAST_READINGS)

      # Of the largest process, if it has an agent.
      def collector
        process = @processes.first
        return unless process.snapshot && agent?(process)

        settings = Setup.of(process.snapshot).collector
        CollectorLimits.ask(process.pid, settings: settings) if settings.version
      end

      def server(tree)
        names = tree.members.first(1).flat_map { |member| Processes::Identity.new(member.pid).names }
        Setup::SERVERS.find { |name| names.any? { |one| one.start_with?(name) } }
      end
    end
  end
end
