# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../system/processes"
require_relative "series"

module Culet
  module Compare
    # Samples the memory of a process tree, in a thread of this process.
    #
    # RSS comes from statm, which is cheap. PSS comes from smaps_rollup: the kernel walks the page tables under a lock
    # that the program's mmap calls need, so it is read twice a second, sooner while memory grows, and for at most 2 %
    # of the time.
    #
    # A new process counts from its second sample: between vfork and exec it shares its parent's memory.
    class Sampler
      INTERVAL_SECONDS = 0.02
      # Programs grow fastest at the start, and short ones would be missed.
      FIRST_INTERVAL_SECONDS = 0.005
      FIRST_SECONDS = 0.1
      # The interval doubles after each of these, so that long runs do not take too many samples.
      SAMPLES_PER_DOUBLING = 3_000

      PSS_INTERVAL_SECONDS = 0.5
      PSS_GROWTH_INTERVAL_SECONDS = 0.1
      PSS_GROWTH = 1.05
      PSS_SHARE_OF_TIME = 0.02
      # Finding new processes reads a file per thread.
      TREE_SHARE_OF_TIME = 0.02
      private_constant :FIRST_INTERVAL_SECONDS, :FIRST_SECONDS, :SAMPLES_PER_DOUBLING, :PSS_GROWTH_INTERVAL_SECONDS,
                       :PSS_GROWTH, :TREE_SHARE_OF_TIME

      # @param descendants [Descendants] the tree
      # @param preload_check [Benchmark::PreloadCheck] examines the sampled processes
      # @param started_at [Float] CLOCK_MONOTONIC in seconds when the program was started: samples have their time since
      #   then
      def initialize(descendants:, preload_check:, started_at:)
        @descendants = descendants
        @preload_check = preload_check
        @started_at = started_at
        @series = Series.new
        @lock = Mutex.new
        @stop_requested = ConditionVariable.new
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
        @thread = Thread.new { run }
        self
      end

      # Ends sampling.
      #
      # @param done_at [Float, nil] CLOCK_MONOTONIC in seconds when the work was done, if before the end
      # @return [Series]
      def stop(done_at: nil)
        @lock.synchronize { @stopping = true and @stop_requested.signal }
        @thread.value
        @series.process_peaks = @peaks
        @series.done_at = done_at && (done_at - @started_at)
        @series
      end

      private

      def run
        due = Clock.now
        loop do
          sample
          due = [due + interval, Clock.now].max
          break if wait(due - Clock.now)
        end
      end

      # @return [Boolean] whether to stop
      def wait(seconds)
        @lock.synchronize do
          @stop_requested.wait(@lock, seconds) if seconds.positive? && !@stopping
          @stopping
        end
      end

      def interval
        return FIRST_INTERVAL_SECONDS if Clock.now - @started_at < FIRST_SECONDS

        INTERVAL_SECONDS * (2**(@series.size / SAMPLES_PER_DOUBLING))
      end

      def sample
        at = Clock.now
        pids = counted(living(at))
        cpu = pids.sum { |pid| Processes::Cpu.exact_seconds(pid) || 0.0 }
        # An exiting process has released its memory already.
        memory = pids.to_h { |pid| [pid, Processes::Memory.rss_bytes(pid)] }.select { |_, bytes| bytes&.positive? }
        return if memory.empty?

        memory.each_key { |pid| raise_peak(pid) }
        rss = memory.values.sum
        @series.add(at: at - @started_at, rss: rss, pss: pss(memory.keys, rss, at), processes: memory.size)
        @series.sampled_cpu_seconds = cpu
        @preload_check.examine(memory.keys)
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

      # @return [Integer, nil] nil when it is not due, or a process cannot be read
      def pss(pids, rss, at)
        grown = rss > @pss_at_rss * PSS_GROWTH && at >= @pss_growth_due
        return unless at >= @pss_due || grown

        before = own_cpu
        values = pids.map { |pid| Processes::Memory.pss_bytes(pid) }
        account_pss(at, rss, own_cpu - before)
        values.sum if values.all?
      end

      # Without the time that this thread waited for a processor.
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
