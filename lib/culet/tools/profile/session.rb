# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "last_reading"
require_relative "live"
require_relative "../../model/profile/recording"
require_relative "../../model/snapshot_levels"
require_relative "../../scope/reader"

module Culet
  module Profile
    # The profiles of one or several running processes, from start to stop.
    class Session
      # Pause between two looks for a signal.
      STEP_SECONDS = 0.05
      # Pause between two looks for new and ended processes.
      LOOK_SECONDS = 1.0
      private_constant :STEP_SECONDS, :LOOK_SECONDS

      # @param sample_bytes [Integer, nil] mean distance of samples, where the profile is off
      # @param stop [#call] whether the session is to end early
      # @param growth [Boolean] whether growth begins with the session, also where the profile was on
      # @param collect [Boolean] whether to run major collections before the last reading of each process
      # @param notes [#puts] gets one line for each process without a profile, or with a part of it
      # @yieldreturn [Array<Integer>] the process numbers; called at the start and before each reading
      def initialize(sample_bytes:, stop:, notes:, growth: false, collect: false, &pids)
        @sample_bytes = sample_bytes
        @stop = stop
        @notes = notes
        @growth = growth
        @collect = collect
        @pids = pids
        @lives = {}
        @readings = {}
        @ended = []
        @gone = []
        @refused = {}
        @reported = {}
      end

      # Starts the profile in each process where it is off.
      #
      # @return [Session] itself
      # @raise [Culet::Error] when none of the processes can be profiled
      def start
        look { |live| live.start(@sample_bytes) }
        raise Error, @refused.values.first if @lives.empty?

        @lives.each_value { |live| begin_growth(live) } if @growth
        @begun = true
        report_refused
        self
      end

      # @return [Boolean] whether the profile of one of the processes was started here
      def started? = @started ||= @lives.each_value.any?(&:started?)

      # Reports what the session does.
      #
      # @param doing [String] e.g. "for 30 s"
      def announce(doing)
        subject = @lives.size == 1 ? "process #{@lives.keys.first}" : "#{@lives.size} processes"
        @notes.puts("culet: profiling #{subject} #{doing}")
      end

      # @return [Boolean] whether the session is to end
      def stopped? = @stop.call

      # Waits until the time is over, the session is to end, or all processes have ended.
      #
      # @param lasting [Boolean] whether to wait on when all processes have ended
      def wait(seconds, lasting: false)
        deadline = Clock.now + seconds
        until stopped? || (left = deadline - Clock.now) <= 0 || (ended? && !lasting)
          sleep([left, STEP_SECONDS].min)
        end
      end

      # Waits likewise, and reads the processes now and then: what one held that ends meanwhile is part of the report.
      def follow(seconds)
        deadline = Clock.now + seconds
        until stopped? || Clock.now >= deadline || ended?
          wait([LOOK_SECONDS, deadline - Clock.now].min)
          keep(&:due?)
        end
      end

      # Reads processes in case that they end.
      #
      # @yieldparam reading [LastReading]
      # @yieldreturn [Boolean] whether to read this one
      def keep
        look_for_new
        @lives.each_key do |pid|
          reading = @readings.fetch(pid)
          reading.take if yield(reading) && alive?(pid)
        rescue Error
          nil # the last reading asks again
        end
        drop_ended
      end

      # Reads the profiles; children that were forked meanwhile are added. Of processes that have ended there is what
      # `keep` has read, once.
      #
      # @param start [Boolean] whether to start the profile of other new processes
      # @return [Array<Stream>] empty when all processes have ended
      def read(start: false)
        look_for_new(start: start)
        report_refused
        streams = @lives.values.filter_map { |live| read_one(live) }
        streams + @ended.slice!(0..)
      end

      # @return [Hash{String => Integer}, nil] by how much the levels of the processes have grown since the base of
      #   their growth; nil where one of them could not be read
      def growth_levels
        return if @levels.nil? || @levels.empty?

        later = @levels.keys.to_h { |pid| [pid, alive?(pid) ? levels_of(pid) : nil] }
        return unless later.each_value.all? && @levels.each_value.all?

        Levels::TITLES.keys.to_h { |name| [name, later.sum { |pid, levels| levels[name] - @levels[pid][name] }] }
      end

      # Stops the profiles that were started here, also in forked children.
      def stop
        started = @lives.values.select(&:started?)
        forked = started.flat_map { |live| Processes::Tree.new(live.pid).pids }.uniq - @lives.keys
        started.each { |live| stop_one(live) }
        forked.each { |pid| stop_forked(pid) }
      end

      private

      def begin_growth(live)
        live.booted
        (@levels ||= {})[live.pid] = levels_of(live.pid)
      end

      # @return [Hash{String => Integer}, nil] nil: the process cannot be read as `culet report` reads it
      def levels_of(pid)
        SnapshotLevels.new(Scope::Reader.new(pid, chunks: 0).snapshot).levels
      rescue Error => e
        @notes.puts("culet: the levels of process #{pid} are not known: #{e.message}") unless @unread
        @unread = true
        nil
      end

      def ended? = @lives.each_key.none? { |pid| alive?(pid) }

      def alive?(pid) = Processes::Cpu.alive?(pid)

      def look_for_new(start: false)
        look { |live| live.running? ? live.inherit(started?) : (live.start(@sample_bytes) if start) }
      end

      # Adds processes that are not known yet. A refused one is asked again: it may have been booting.
      def look(&start)
        pids = present
        @refused.keep_if { |pid, _| pids.include?(pid) }
        new = (pids - @lives.keys).reject { |pid| @gone.include?(pid) && !alive?(pid) }
        new.each { |pid| add(pid, &start) }
      end

      # @return [Array<Integer>]
      def present
        @pids.call
      rescue Processes::Search::Absent, Processes::Search::Ambiguous => e
        raise unless @begun

        @notes.puts("culet: #{e.message}") if e.is_a?(Processes::Search::Ambiguous) && e.message != @ambiguity
        @ambiguity = e.message
        []
      end

      # @yieldreturn [Boolean, nil] whether the process has a profile now
      def add(pid)
        live = Live.new(pid)
        return unless yield(live)

        @lives[pid] = live
        @readings[pid] = LastReading.new(live)
        @refused.delete(pid)
        @notes.puts("culet: #{live.note}") if live.note
      rescue Error => e
        @refused[pid] = e.message
      end

      def report_refused
        @refused.each { |pid, sentence| @notes.puts("culet: #{sentence}") if @reported[pid] != sentence }
        @reported = @refused.dup
      end

      def read_one(live)
        live.collect if @collect
        Stream.new(live.name, live.pid, live.read, :running)
      rescue Error => e
        former = drop(live.pid)
        @notes.puts("culet: #{e.message}") unless former && former.state == :ended
        @ended << former if former
        nil
      end

      def drop_ended = @ended.concat(@lives.keys.reject { |pid| alive?(pid) }.filter_map { |pid| drop(pid) })

      # @return [Stream, nil] the last reading of the process
      def drop(pid)
        @lives.delete(pid)
        reading = @readings.delete(pid)
        return reading&.stream if alive?(pid)

        @gone << pid
        reading&.at_end(Time.now)
      end

      def stop_one(live)
        live.stop
      rescue Error => e
        @notes.puts("culet: the profile of process #{live.pid} was not stopped: #{e.message}") if alive?(live.pid)
      end

      # A child has the profile from its parent, if it carries the agent at all.
      def stop_forked(pid)
        live = Live.new(pid)
        live.inherit(true)
        live.stop if live.running?
      rescue Error
        nil # without an agent there is nothing to stop
      end
    end
  end
end
