# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "../../model/diagnosis"
require_relative "../../model/kept_sites"
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
      STEP_SECONDS = 0.05
      # Processes that are read again and again, the largest first: workers of one kind are alike.
      FOCUS = 2
      # Readings of each of them do not pause it, and are made no more often than these seconds, nor than this multiple
      # of what they take; but so many at least, for a trend.
      READING_SECONDS = 0.5
      REST_PER_READING = 10
      LEAST_READINGS = Trend::LEAST_POINTS + 1
      # A reading of memory that changed meanwhile is dropped if more than this part of it is unexplained.
      MOST_UNEXPLAINED = 0.05
      # Looks at holders, which fork the process; so many at least tell growth.
      LOOKS = Retention::Growth::LOOKS
      LEAST_LOOKS = 5
      # A process of which a look took more processor time, in seconds, is not looked at again.
      MOST_LOOK_SECONDS = 5.0
      # A watch whose looks are late, on a busy machine, takes so many times as long at most.
      MOST_TIMES = 2
      private_constant :TICK_SECONDS, :STEP_SECONDS, :FOCUS, :READING_SECONDS, :REST_PER_READING, :LEAST_READINGS,
                       :MOST_UNEXPLAINED, :LOOKS, :LEAST_LOOKS, :MOST_LOOK_SECONDS, :MOST_TIMES

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
          @processes.each { |process| read(process) if elapsed >= @due.fetch(process) }
          start_look if look_due?
          break if @interruption.wait([[@next_tick, *@due.values].min - elapsed, 0].max)

          tick if elapsed >= @next_tick
        end
        start_look if look_due?
        finish_look
        @processes.each { |process| read(process, mode: :sliced) unless gone?(process.pid) }
      end

      def over? = gone?(@root) || (elapsed >= @seconds && !(looks_missing? && elapsed < MOST_TIMES * @seconds))

      def looks_missing? = @agent && @looks.size.between?(1, LEAST_LOOKS - 1)

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
      end

      # A process that cannot be read is told of once, and not read again.
      def read(process, mode: :live)
        return if @due.fetch(process) == Float::INFINITY

        at = elapsed
        snapshot = Scope::Reader.new(process.pid, chunks: 0, mode: mode).snapshot
        rest = [READING_SECONDS, (elapsed - at) * REST_PER_READING].max
        @due[process] = at + [rest, @seconds / (LEAST_READINGS - 1)].min
        process.add(at, snapshot) if mode == :sliced || consistent?(snapshot)
      rescue Error => e
        @problems |= [e.message]
        @due[process] = Float::INFINITY
      end

      def consistent?(snapshot)
        memory = SnapshotLevels.new(snapshot)
        memory.unexplained_bytes.abs <= MOST_UNEXPLAINED * memory.rss_bytes && snapshot.arenas.none?(&:broken)
      end

      def look_due?
        @agent ||= @processes.find { |process| agent?(process) } unless @stopped_looking
        @agent && !@look&.alive? && @looks.size < LOOKS && elapsed >= @seconds * @looks.size / (LOOKS - 1)
      end

      # A young process may not have answered the first questions.
      def agent?(process) = @moments.last["processes"].any? { |one| one["pid"] == process.pid && one["figures"] }

      # The copy has idle priority, and may take long on a busy machine: the readings go on meanwhile.
      def start_look
        agent = @agent
        samples = elapsed >= @seconds && profiled?
        @look = Thread.new { look(agent, samples) }
      end

      def finish_look
        sleep(STEP_SECONDS) while @look&.alive? && !@interruption.requested?
        @look&.kill&.join
      end

      def look(agent, samples)
        at = Clock.now
        document = Retention::Reading.of_process(agent.pid, samples: samples)
        analysis = Retention::Analysis.new(document, name: agent.title)
        @looks << Retention::Growth::Look.new(at, analysis)
        stop_looking("a look took #{analysis.cpu_seconds.round} s") if analysis.cpu_seconds > MOST_LOOK_SECONDS
      rescue Error => e
        stop_looking(e.message)
      end

      # The last look finds what keeps the samples of the profile, too.
      def profiled? = !@session.nil? && Processes::Marks.profile?(@agent.pid)

      def stop_looking(reason)
        @problems |= ["what keeps memory is not known: #{reason}"]
        @stopped_looking = true
        @agent = nil
      end

      def observation(profile, growth)
        tree = Cow::ProcessTree.new([@root])
        Diagnosis::Observation.new(seconds: elapsed, moments: @moments, processes: @processes.select(&:snapshot),
                                   tree: tree, collector: collector, retention: retention(profile),
                                   profile: profile, growth: growth,
                                   problems: @problems | tree.problems)
      end

      def retention(profile)
        return if @looks.size < LEAST_LOOKS

        Retention::Growth.new(@looks).tap do |growth|
          growth.sites = KeptSites.new(profile, [growth.analysis]) if profile
        end
      end

      # Of the largest process, if it has an agent.
      def collector
        process = @processes.first
        return unless process.snapshot && agent?(process)

        settings = Setup.of(process.snapshot).collector
        CollectorLimits.ask(process.pid, settings: settings) if settings.version
      end
    end
  end
end
