# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "../../model/diagnosis"
require_relative "../../model/kept_sites"
require_relative "../../model/profile"
require_relative "../../model/retention/looks"
require_relative "../../model/retention/reading"
require_relative "../../model/sampler"
require_relative "../../model/sharing/process_tree"
require_relative "../../scope/reader"

module Culet
  module Explain
    # Watches a process tree: the kernel's counters every second, the whole memory of its largest processes at
    # intervals, and their holders, if they have the agent.
    class Watch
      TICK_SECONDS = 1.0
      # Number of processes that are read at intervals, the largest first, because workers of one kind are alike.
      FOCUS = 2
      # Readings do not pause the process. The minimum interval in seconds, and as a multiple
      # of their duration; and the minimum number of readings, for a trend.
      READING_SECONDS = 2.0
      REST_PER_READING = 10
      LEAST_READINGS = Trend::LEAST_POINTS + 1
      # A reading with a larger unexplained share is dropped: the memory changed during the reading.
      MOST_UNEXPLAINED = 0.05
      # Maximum extension of a watch whose looks or readings are late, on a busy machine, as a multiple of its duration.
      MOST_TIMES = 2
      # A process whose look takes more CPU seconds gets no further look.
      MOST_LOOK_SECONDS = 5.0
      # Number of workers whose writes to shared memory are analysed, because workers are alike.
      COMPARED = 1
      # Maximum wait, in seconds, for the end of the forked copy of an interrupted look.
      COPY_SECONDS = 5.0
      private_constant :TICK_SECONDS, :FOCUS, :READING_SECONDS, :REST_PER_READING, :LEAST_READINGS, :MOST_UNEXPLAINED,
                       :MOST_TIMES, :MOST_LOOK_SECONDS, :COMPARED, :COPY_SECONDS

      # @param root [Integer] process number of the tree's first process
      # @param seconds [Float] duration of the watch
      # @param interruption [Interruption] ends the watch early
      # @param session [Profile::Session, nil] started; nil: no process has a profile
      def initialize(root, seconds:, interruption:, session: nil)
        @root = root
        @seconds = seconds
        @interruption = interruption
        @session = session
        @problems = []
        @moments = []
        @looks = {}
        @lookers = []
      end

      # @return [Diagnosis::Observation]
      # @raise [Culet::Error] when the tree's first process does not exist, may not be read, or ends at once
      def call
        @sampler = Live::Sampler.new([@root])
        @start = Clock.now
        follow
        profile, growth = profiled
        observation(profile, growth)
      ensure
        @session&.stop
        @lookers.each(&:kill)
        @sampler&.close
      end

      private

      def elapsed = Clock.now - @start

      def follow
        tick
        choose
        until over?
          @processes.each { |process| read(process) if elapsed >= @due.fetch(process) }
          look
          break if @interruption.wait([[@next_tick, *@due.values].min - elapsed, 0].max)

          tick if elapsed >= @next_tick
        end
        @lookers.each(&:kill).each(&:join)
        await_copies
      end

      # Until a copy ends, it shares the memory of its process, whose private bytes and PSS are too low.
      def await_copies
        deadline = Clock.now + COPY_SECONDS
        sleep(0.1) while copies.any? && Clock.now < deadline
        return if copies.empty?

        @problems << "a forked copy has not ended yet: memory that it shares is counted in part"
      end

      # @return [Array<Integer>] the running copies
      def copies
        inherited = @processes.filter_map { |process| inherited(process.pid) }
        Processes::Search.pids.select do |pid|
          Processes::Identity.new(pid).copy? && inherited.include?(inherited(pid)) && Processes::Cpu.alive?(pid)
        end
      end

      # The process group and the command line, by which a copy is recognised.
      def inherited(pid)
        [Process.getpgid(pid), Processes::Identity.new(pid).command_line]
      rescue Errno::ESRCH
        nil
      end

      def over?
        return true unless Processes::Cpu.alive?(@root)

        elapsed >= (late? ? MOST_TIMES * @seconds : @seconds)
      end

      # The last reading is made at the end.
      def late?
        @lookers.any?(&:alive?) ||
          @due.any? { |process, at| at.finite? && process.readings.size < LEAST_READINGS - 1 }
      end

      def forks? = Processes::Tree.new(@root).pids.size > 1

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
        @processes = largest.map { |one| Diagnosis::ObservedProcess.new(*one.values_at("pid", "title", "start_ticks")) }
        @due = @processes.to_h { |process| [process, 0.0] }
      end

      # A process that cannot be read is reported once, and not read again.
      def read(process)
        return if @due.fetch(process) == Float::INFINITY

        at = elapsed
        snapshot = Scope::Reader.new(process.pid, chunks: 0, mode: :live).snapshot
        rest = [READING_SECONDS, (elapsed - at) * REST_PER_READING].max
        @due[process] = at + [rest, @seconds / (LEAST_READINGS - 1)].min
        memory = SnapshotLevels.new(snapshot)
        process.add(at, memory) if consistent?(memory)
      rescue Error => e
        @problems |= [e.message]
        @due[process] = Float::INFINITY
      end

      def consistent?(memory)
        memory.unexplained_bytes.abs <= MOST_UNEXPLAINED * memory.rss_bytes && memory.snapshot.arenas.none?(&:broken)
      end

      # The last moment counts, because a young process may not have answered before.
      def agent?(process) = @moments.last["processes"].any? { |one| one["pid"] == process.pid && one["figures"] }

      # Starts the looks at processes whose agents have answered.
      def look
        @processes.each do |process|
          next if @looks[process] || !agent?(process)

          @looks[process] = looks(process)
          @lookers << Thread.new do
            Thread.current.report_on_exception = false # `join` raises it
            @looks[process].call
          end
        end
      end

      def looks(process)
        samples = !@session.nil? && Processes::Marks.profile?(process.pid)
        Retention::Looks.new(seconds: [@seconds - elapsed, 0].max, interruption: @interruption,
                             most_cpu_seconds: MOST_LOOK_SECONDS) do
          document = Retention::Reading.of_process(process.pid, again: false,
                                                                samples: samples && elapsed >= @seconds - TICK_SECONDS)
          Retention::Analysis.new(document, name: process.title)
        end
      end

      # @return [Array(Profile::Data, Profile::Growth), nil] nil: no process with a profile is left
      def profiled
        streams = @session&.read or return
        levels = @session.growth_levels
        @session.stop
        return if streams.empty?

        data = Profile::Data.new(streams.map(&:recording))
        [data, Profile::Growth.new(data, levels: levels)]
      end

      def observation(profile, growth)
        raise Error, ended unless Processes::Cpu.alive?(@root)

        tree = Cow::ProcessTree.new([@root], writes: forks? ? COMPARED : 0)
        add_last(tree)
        @looks.each { |process, looks| process.looked = looks.known? }
        processes = @processes.select(&:snapshot)
        raise Error, [*@problems, *tree.problems].first.to_s if processes.empty?

        Diagnosis::Observation.new(seconds: elapsed, moments: @moments, processes: processes,
                                   tree: tree, collector: collector, retention: retention(profile),
                                   profile: profile, growth: growth, looks_late: looks_late?,
                                   problems: @problems | look_problems | ended_processes | tree.problems)
      end

      def ended
        "process #{@root} ended #{elapsed.round} s into the watch; if it is killed, CULET_BLACKBOX=DIR in its " \
          "environment keeps what `culet autopsy DIR` reports"
      end

      # Ended Ruby processes; commands that a program runs do not count.
      def ended_processes
        known = @moments.flat_map { |moment| moment["processes"] }.to_h { |one| one.values_at("pid", "ruby") }
        ended = @moments.flat_map { |moment| moment["events"].select { |one| one["kind"] == "exit" } }
        count = ended.count { |event| known[event["pid"]] }
        return [] if count.zero?

        processes = count == 1 ? "a Ruby process" : "#{count} Ruby processes"
        ["#{processes} ended during the watch: #{count == 1 ? "its" : "their"} growth is not measured"]
      end

      def looks_late? = @looks.any? && @looks.each_value.all?(&:late?)

      def look_problems
        @looks.each_value.filter_map(&:problem).map { |reason| "what keeps memory is not known: #{reason}" }
      end

      # Reading the tree pauses its processes, so the reading of the tree is also their last one.
      def add_last(tree)
        levels = tree.read_members.to_h { |member| [member.pid, SnapshotLevels.new(member.snapshot)] }
        @processes.each { |process| levels[process.pid]&.then { |memory| process.add(elapsed, memory) } }
      end

      # @return [Retention::Growth, nil]
      def retention(profile)
        found = Retention::Growth.largest(@looks.each_value.select(&:known?).map(&:growth))
        found.sites = KeptSites.new(profile, [found.analysis]) if found && profile
        found
      end

      # The limits of the largest process's collector, if it has an agent.
      def collector
        process = @processes.first
        return unless process.snapshot && agent?(process)

        settings = Setup.of(process.snapshot).collector
        CollectorLimits.ask(process.pid, settings: settings) if settings.version
      end
    end
  end
end
