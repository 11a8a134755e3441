# frozen_string_literal: true

require_relative "../../system/background_thread"
require_relative "../../system/clock"
require_relative "../../text/size"

module Culet
  module Limit
    # The Ruby thread that keeps the limit of a process. The native thread (ext/culet/limit/) reads the usage and acts
    # within milliseconds; near the limit it wakes this thread, which takes the steps of the escalation.
    class Monitor
      # Seconds for which the usage must stay above the critical level before a restart.
      SETTLE = 2.0
      # Interval in seconds at which the limit is read again, because it may change.
      REREAD = 5.0
      # Minimum seconds between two log lines for the trims and collections of the native thread.
      SUMMARY = 10.0
      # Interval in seconds at which the parent of a cluster lists its workers.
      CLUSTER = 0.5

      # @param settings [Settings]
      # @param source [Source] the limit and its usage
      # @param forked [Boolean] whether this is the monitor of a forked child
      def initialize(settings, source, forked: false)
        @settings = settings
        @source = source
        @history = History.new(Limit.log)
        @counts = {}
        @stopping = false
        @forked = forked
        @reread = 0
        rebuild
      end

      # @return [self]
      # @raise [Culet::Error] when the extension cannot start its thread
      def start
        @wakeup = IO.for_fd(Limit.send(:event_descriptor))
        @counts = Limit.send(:counts)
        watch
        check_size unless @forked
        note_limit
        @thread = BackgroundThread.start("culet-limit") { run }
        @thread.report_on_exception = false
        self
      end

      # @return [void]
      def stop
        @stopping = true
        @thread&.kill&.join
        Limit.send(:unwatch)
        close
      end

      # @return [Monitor] a new monitor for a forked child, started, with an empty history
      def forked
        close
        Monitor.new(@settings, Source.new(@settings), forked: true).start
      end

      # Wakes the thread, which lists the workers again.
      def wake = @wakeup.write_nonblock([1].pack("Q"), exception: false)

      # Builds the escalation from the present callbacks, threads and restart.
      def rebuild
        steps = [Steps::Trim.new, Steps::Callbacks.new(Limit.callbacks, Limit.log),
                 Steps::Collection.new(Limit.boundary), *Limit.threads, *Limit.restart]
        if @thread
          list_workers # before the first is forked
          watch # the kind of usage may have changed
          wake # the interval of the loop may have changed
        end
        @escalation = Escalation.new(steps, history: @history, used: method(:used_bytes), limit: -> { @source.bytes },
                                    own: -> { Limit.send(:anonymous) })
      end

      # @return [Integer]
      def limit_bytes = @source.bytes

      # @return [Hash{String => Object}]
      def status
        Source.usage(@source.bytes, @source.description, used_bytes)
              .merge("steps" => @history.steps, "native" => Limit.send(:counts).transform_keys(&:to_s))
      end

      private

      # A size in CULET_LIMIT applies to all processes of a cluster together, as a control group does. The parent reads
      # their sum, and reports it to the workers.
      def kind = @source.kind == :pss && Limit.clustered? && !Limit.cluster ? :reported : @source.kind

      def used_bytes
        list_workers
        Limit.send(:used)
      end

      def list_workers
        Limit.cluster.list if Limit.cluster && @source.kind == :pss
      end

      def check_size
        used = used_bytes
        return unless used && used >= @source.bytes * Escalation::CRITICAL

        Limit.log.call("culet: the memory limit, #{Text::Size.limit(@source.bytes)}, is nearly used up at the " \
                       "start: #{Text::Size.human(used)} in use; a larger limit is needed")
      end

      # Passes the limit and the files to the native thread, which may read the old files until the call returns.
      def watch
        old = @files
        group = @source.group
        @files = group ? [group.usage_file, group.stat_file].map { |path| open_if_readable(path) } : [nil, nil]
        problem = Limit.send(:watch, @source.bytes, kind, @files[0]&.fileno, @files[1]&.fileno, @wakeup.fileno)
        raise Error, problem if problem
      ensure
        old&.compact&.each(&:close)
      end

      def open_if_readable(path)
        File.open(path)
      rescue SystemCallError
        nil
      end

      def run
        until @stopping
          woken = IO.select([@wakeup], nil, nil, Limit.cluster ? CLUSTER : REREAD)
          list_workers
          reread unless woken
          note_limit
          @escalation.relieve unless woken
          @wakeup.read_nonblock(8, exception: false)
          native_steps
          wait_for_next_pass(@escalation.call) if woken
        end
      rescue StandardError => e
        Limit.log.call("culet: the memory limit is not kept any more: #{e.class}: #{e.message}") unless @stopping
      end

      # The pause ends early if the usage rises, also by other processes of the group.
      #
      # @param seconds [Float] maximum
      def wait_for_next_pass(seconds)
        deadline = Clock.now + seconds
        bytes = @escalation.next_pass_bytes
        while (rest = deadline - Clock.now).positive?
          sleep([rest, Escalation::SHORTEST].min)
          list_workers
          break if Limit.send(:full?, bytes)
        end
      end

      def reread
        return if Clock.now - @reread < REREAD

        @reread = Clock.now
        source = Source.new(@settings)
        return if [source.bytes, source.description] == [@source.bytes, @source.description]
        return vanished unless source.bytes

        Limit.log.call("culet: the memory limit is #{Text::Size.limit(source.bytes)} now (#{source.description})")
        @source = source
        @noted = nil
        watch
      end

      # Writes the limit to each black box once. A black box may start after the monitor, and at a fork.
      def note_limit
        box = BlackBox.path if defined?(BlackBox.path)
        return if box.nil? || box == @noted

        BlackBox.limit(@source.bytes, @source.description)
        @noted = box
      end

      # Keeps the last limit, because a file may be unreadable for a moment.
      def vanished
        return if @vanished

        @vanished = true
        Limit.log.call("culet: the memory limit cannot be read any more; #{Text::Size.limit(@source.bytes)} stays the limit")
      end

      COUNTED = { "trim" => %i[trims trimmed_bytes], "collection" => %i[collections collected_bytes] }.freeze
      private_constant :COUNTED

      # Logs the trims and collections of the native thread, one line for each kind.
      def native_steps
        return if @summed && Clock.now - @summed < SUMMARY

        @summed = Clock.now
        before = @counts
        @counts = counts = Limit.send(:counts)
        COUNTED.each do |name, (times, bytes)|
          number = counts[times] - before.fetch(times, 0)
          next unless number.positive?

          @history.add(name, freed: counts[bytes] - before.fetch(bytes, 0), used: counts[:used_bytes],
                             limit: @source.bytes, detail: "in the background", times: number)
        end
        tightened(counts, before)
      end

      # Logs that earlier collections have begun; they may have ended since.
      def tightened(counts, before)
        return unless counts[:tightened] > before.fetch(:tightened, 0) && before.fetch(:budget_bytes, 0).zero?

        budget = counts[:budget_bytes]
        detail = "Ruby collects after #{Text::Size.human(budget)} of malloc" if budget.positive?
        @history.add("tighten", freed: nil, used: counts[:used_bytes], limit: @source.bytes, detail: detail)
      end

      def close = [*@files, @wakeup].compact.each(&:close)
    end
  end
end
