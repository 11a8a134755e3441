# frozen_string_literal: true

require_relative "../../system/processes"
require_relative "series"

module Culet
  module Compare
    # Reads the memory of a process tree while it runs, in a thread of this
    # process.
    #
    # What it costs the measured program: RSS comes from statm, a few counters of
    # the kernel. PSS comes from smaps_rollup, for which the kernel walks the page
    # tables under a lock that the program's own mmap calls need; it is therefore
    # asked for twice a second, sooner while memory grows, and less often where it
    # takes long, so that it fills at most 2 % of the time.
    #
    # A new process counts from the second look on: between vfork and exec it
    # shares its parent's memory, which would count twice.
    class Sampler
      INTERVAL_SECONDS = 0.02
      # Just after the start the program grows fastest, and a very short one would be missed.
      FIRST_INTERVAL_SECONDS = 0.005
      FIRST_SECONDS = 0.1
      # After so many samples the interval doubles, again and again: an hour's run has some thousand samples.
      SAMPLES_PER_DOUBLING = 3_000

      PSS_INTERVAL_SECONDS = 0.5
      PSS_GROWTH_INTERVAL_SECONDS = 0.1
      PSS_GROWTH = 1.05
      PSS_SHARE_OF_TIME = 0.02
      # Finding new processes reads a file per thread: not more often than this share of the time allows.
      TREE_SHARE_OF_TIME = 0.02
      private_constant :FIRST_INTERVAL_SECONDS, :FIRST_SECONDS, :SAMPLES_PER_DOUBLING, :PSS_GROWTH_INTERVAL_SECONDS,
                       :PSS_GROWTH, :TREE_SHARE_OF_TIME

      # @param descendants [Descendants] the tree
      # @param witness [Witness] is shown the processes, to learn what allocator they carry
      def initialize(descendants:, witness:)
        @descendants = descendants
        @witness = witness
        @series = Series.new
        @lock = Mutex.new
        @bell = ConditionVariable.new
        @stopping = false
        @seen = {}
        @peaks = Hash.new(0)
        @tree_due = @pss_due = 0.0
        @pss_growth_due = 0.0
        @pss_at_rss = 0
      end

      # Starts sampling.
      # @return [self]
      def start
        @started_at = now
        @thread = Thread.new { run }
        self
      end

      # Ends sampling.
      #
      # @param done_at [Float, nil] CLOCK_MONOTONIC in seconds when the work was done, if it was before the end
      # @return [Series]
      def stop(done_at: nil)
        @lock.synchronize { @stopping = true and @bell.signal }
        @thread.value
        @series.process_peaks = @peaks
        @series.done_at = done_at && (done_at - @started_at)
        @series
      end

      private

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      def run
        due = now
        loop do
          sample
          due = [due + interval, now].max
          break if wait(due - now)
        end
      end

      # @return [Boolean] whether to stop; waits at most so long for the wish
      def wait(seconds)
        @lock.synchronize do
          @bell.wait(@lock, seconds) if seconds.positive? && !@stopping
          @stopping
        end
      end

      def interval
        return FIRST_INTERVAL_SECONDS if now - @started_at < FIRST_SECONDS

        INTERVAL_SECONDS * (2**(@series.size / SAMPLES_PER_DOUBLING))
      end

      def sample
        at = now
        pids = counted(living(at))
        # Nothing is resident of a process that is just ending: its memory has left it before it is gone.
        memory = pids.to_h { |pid| [pid, Processes::Memory.rss_bytes(pid)] }.select { |_, bytes| bytes&.positive? }
        return if memory.empty?

        memory.each_key { |pid| raise_peak(pid) }
        rss = memory.values.sum
        @series.add(at: at - @started_at, rss: rss, pss: pss(memory.keys, rss, at), processes: memory.size)
        @witness.look(memory.keys)
      end

      def raise_peak(pid)
        peak = Processes::Memory.peak_rss_bytes(pid)
        @peaks[pid] = peak if peak && peak > @peaks[pid]
      end

      def living(at)
        return @descendants.alive if at < @tree_due

        before = own_cpu
        pids = @descendants.refresh
        @tree_due = at + ((own_cpu - before) / TREE_SHARE_OF_TIME)
        pids
      end

      def counted(pids)
        pids.select do |pid|
          known = @seen[pid] || pid == @descendants.root
          @seen[pid] = true
          known
        end
      end

      # @return [Integer, nil] nil when it is not due, or one of the processes may not be read
      def pss(pids, rss, at)
        grown = rss > @pss_at_rss * PSS_GROWTH && at >= @pss_growth_due
        return unless at >= @pss_due || grown

        before = own_cpu
        values = pids.map { |pid| Processes::Memory.pss_bytes(pid) }
        account_pss(at, rss, own_cpu - before)
        values.sum if values.all?
      end

      # What the walk takes, without the time that this thread waited for a processor.
      def own_cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)

      def account_pss(at, rss, cost)
        rest = cost / PSS_SHARE_OF_TIME
        @pss_due = at + [PSS_INTERVAL_SECONDS, rest].max
        @pss_growth_due = at + [PSS_GROWTH_INTERVAL_SECONDS, rest].max
        @pss_at_rss = [rss, @pss_at_rss].max
      end
    end
  end
end
