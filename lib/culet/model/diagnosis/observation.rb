# frozen_string_literal: true

require_relative "../collector_limits"
require_relative "../remedies"
require_relative "../savings"
require_relative "../snapshot_levels"
require_relative "../thresholds"
require_relative "../trend"
require_relative "reuse"

module Culet
  class Diagnosis
    # Levels of memory in use, of Ruby and of malloc. malloc_unsplit includes free memory.
    HEAP_IN_USE = %w[ruby_objects malloc_used malloc_unsplit].freeze
    # HEAP_IN_USE and mappings of libraries.
    IN_USE = [*HEAP_IN_USE, "other"].freeze
    # Levels of Ruby's own pages.
    RUBY_HEAP = %w[ruby_objects ruby_free_slots ruby_page_overhead].freeze
    # Levels that a process can share with its children only, not with other programs.
    OWN = (Levels::TITLES.keys - %w[libraries_and_files other unexplained]).freeze
    # Minimum number of an agent's counts, to tell peaks from garbage, and to measure the work.
    LEAST_COUNTS = 12
    LEAST_WORK_COUNTS = 4

    # The readings of one process during the watch: its levels at each time, and its whole memory at the end.
    class ObservedProcess
      # One reading. at: seconds since the start of the watch; levels: bytes by name; blocks: blocks in use;
      # old_objects: objects that Ruby counts as old; collections, major_collections: numbers so far. nil: unknown.
      Reading = Struct.new(:at, :levels, :blocks, :old_objects, :collections, :major_collections)

      # @return [Integer]
      attr_reader :pid
      # @return [String]
      attr_reader :title
      # @return [Integer, nil] start time in ticks, which tells the process from a later one with the same number
      attr_reader :start_ticks
      # @return [Array<Reading>] in the order of time
      attr_reader :readings
      # @return [Scope::Snapshot, nil] the last one
      attr_reader :snapshot
      # @return [Reuse]
      attr_reader :reuse
      # @return [Boolean, nil] whether enough looks have analysed the retention of the process
      attr_accessor :looked

      # @param levels [Hash{String => Integer}, nil] as of Levels.counted
      # @return [Integer, nil] bytes in use; nil: unknown
      def self.counted(levels)
        values = levels.to_h.values_at(*HEAP_IN_USE).compact
        values.sum if values.size > 1
      end

      # @param pid [Integer]
      # @param title [String]
      # @param start_ticks [Integer, nil] start time in clock ticks
      def initialize(pid, title, start_ticks = nil)
        @pid = pid
        @title = title
        @start_ticks = start_ticks
        @readings = []
        @reuse = Reuse.new
      end

      # @param at [Float] seconds since the start of the watch
      # @param memory [SnapshotLevels]
      # @return [Reading]
      def add(at, memory)
        @snapshot = snapshot = memory.snapshot
        blocks = snapshot.sizes ? snapshot.sizes["buckets"].sum { |bucket| bucket[1] } : 0
        levels = memory.levels
        @reuse.add(snapshot, levels)
        Reading.new(at, levels, blocks, *counts(snapshot.ruby)).tap { |reading| @readings << reading }
      end

      # @return [Boolean] whether the reader tells used blocks of this malloc from free ones
      def blocks? = snapshot.allocator.blocks?

      # @param names [Array<String>] levels
      # @return [Trend] their sum over time
      def trend(*names) = Trend.new(readings.map { |one| [one.at, one.levels.values_at(*names).sum] })

      # @return [Trend] of the memory in use; unless `blocks?`, free memory of malloc is included
      def in_use = trend(*IN_USE)

      # The number of all objects hardly changes, because garbage fills slots until a lazy sweep frees them. Old
      # objects have survived collections.
      #
      # @return [Trend] of the number of old objects; 0 if unknown
      def old_objects = Trend.new(readings.map { |one| [one.at, one.old_objects.to_i] })

      # @return [Trend] of the number of blocks of malloc in use
      def blocks = Trend.new(readings.map { |one| [one.at, one.blocks] })

      # @param counter [Symbol] :collections or :major_collections
      # @return [Integer] number of these collections during the watch; 0 if unknown
      def collected(counter) = readings.filter_map(&counter).minmax.then { |least, most| most.to_i - least.to_i }

      private

      def counts(ruby)
        return [] unless ruby&.major_gcs

        [ruby.old_objects, ruby.minor_gcs + ruby.major_gcs, ruby.major_gcs]
      end
    end

    # The readings of a process tree during the watch.
    #
    # seconds: duration; moments: Hashes of Live::Sampler, one a second; processes: ObservedProcess, the largest first;
    # tree: a Cow::ProcessTree of the end; collector: CollectorLimits of the largest process, or nil; retention:
    # Retention::Growth of the process in which holders or native memory grow most, or nil; profile: Profile::Data, or
    # nil; growth: Profile::Growth of it, or nil; history: History, or nil; looks_late: whether most looks at each
    # process are missing; problems: sentences.
    Observation = Struct.new(:seconds, :moments, :processes, :tree, :collector, :retention, :profile, :growth,
                             :history, :looks_late, :problems, keyword_init: true) do
      # @param process [ObservedProcess]
      # @return [Trend, nil] of its memory in use, including the time before the watch; nil: no history
      def history_of(process) = history&.trend(process, seconds)

      # @param process [ObservedProcess]
      # @return [Trend, nil] of its memory in use, by its blocks or by the agent; nil: unknown
      def in_use_of(process)
        return process.in_use if process.blocks?

        counts = counts_of(process.pid, "malloc_used_bytes")
        points = counts.filter_map { |at, one| ObservedProcess.counted(one["levels"])&.then { |bytes| [at, bytes] } }
        Trend.new(points) if points.size >= LEAST_COUNTS
      end

      # @return [ObservedProcess, nil] of the processes with looks, the one in which holders or native memory grow most
      def looked_at
        pid = retention&.analysis&.pid
        processes.find { |one| one.pid == pid }
      end

      # @return [Boolean] whether an agent has answered
      def agent? = moments.any? { |moment| moment["processes"].any? { |one| one["figures"] } }

      # @return [Trend, nil] of memory that malloc has in use and no object reports, at the looks; nil: unknown
      def native = at_looks(&:native_bytes)

      # @return [Trend, nil] of reachable memory at the looks; nil: no looks
      def reachable = at_looks(&:total_bytes)

      # @return [Trend, nil] of the memory of all objects at the looks, including garbage; nil: no looks
      def objects = at_looks { |analysis| analysis.total_bytes + analysis.unreachable_bytes }

      # @return [Float, nil] the largest reachable share of the Ruby heap's pages at a look; nil: no
      #   looks
      def reachable_share = share(at_each_look(:slot_bytes).max, *RUBY_HEAP)

      # @return [Float, nil] the largest share of malloc's memory in use; nil: no looks, or the levels have it
      def used_share
        counts = points_of(looked_at&.pid) { |one| one.dig("figures", "malloc_used_bytes") }.map(&:last)
        share(at_each_look(:malloc_in_use_bytes).push(*counts).max, "malloc_unsplit")&.clamp(0.0, 1.0)
      end

      # The PSS of the tree lacks the part of children that end before they are read.
      #
      # @return [Integer] bytes of all processes at the end, shared pages counted once
      def total_bytes = [tree.total_pss_bytes, private_bytes(*OWN)].max

      # @return [Array<Cow::ForkedProcess>] the processes whose memory could be read
      def members = tree.read_members

      # @return [Array<Cow::ForkedProcess>] forked processes that share memory with their parent
      def workers = members.select(&:forked)

      # @return [Array<Savings::Part>] of all `members`
      def parts = @parts ||= members.map(&:part)

      # @param names [Array<String>] levels
      # @return [Integer] bytes of all processes, without memory shared with their parent
      def private_bytes(*names) = parts.sum { |part| part.bytes(*names) }

      # @return [Integer] size in bytes to which the Ruby heaps of the processes that were not forked grow without a
      #   collection
      def initial_heap_bytes
        sizes = (members - workers).flat_map { |member| member.snapshot.ruby&.slots || [] }
        Thresholds::INITIAL_HEAP_BYTES * sizes.count { |size| size["pages"].positive? }
      end

      # @return [Remedies] for the processes whose memory could be read
      def remedies
        @remedies ||= Remedies.new(members.map { |member| Setup.of(member.snapshot) }, forks: workers.any?)
      end

      # @return [Boolean] whether the program has raised the limits of its collector
      def inflated? = !collector.nil? && collector.inflated?(processes.first.snapshot.process.rss_bytes)

      # Resident memory rather than PSS, which the forked copy of a look reduces.
      #
      # @param pid [Integer]
      # @return [Trend] of its resident memory
      def resident_of(pid) = Trend.new(points_of(pid) { |one| one["rss_bytes"] })

      # Estimates the growth of all workers of a parent from the growth of one.
      #
      # @param pid [Integer]
      # @return [Numeric] the growth of resident memory of all workers of its parent, divided by its own; the number of
      #   workers, if its own does not grow; 1 for a process that is not a worker
      def worker_weight(pid)
        last = moments.last["processes"]
        parent = last.find { |one| one["pid"] == pid }&.fetch("parent_pid")
        return 1 if last.none? { |one| one["pid"] == parent }

        rates = last.select { |one| one["parent_pid"] == parent }
                    .to_h { |one| [one["pid"], [resident_of(one["pid"]).rate, 0].max] }
        own = rates.fetch(pid)
        own.positive? ? (rates.values.sum / own).clamp(1, rates.size) : rates.size
      end

      # @return [Array<Float>] the work of the processes per second in each third of the watch
      def load
        return [] if moments.size < 4

        third = (moments.last["at"] - moments.first["at"]) / 3.0
        pids = moments.last["processes"].map { |one| one["pid"] }.select { |pid| work_of(pid).size > 1 }
        sums = (0..3).map { |mark| pids.sum { |pid| work_until(pid, mark * third) } }
        sums.each_cons(2).map { |before, after| (after - before) / third }
      end

      # @param pid [Integer]
      # @param seconds [Float] since the first moment
      # @return [Float] the work of the process until this time: allocated objects, or, with too few
      #   counts, CPU time; the seconds, if neither is known
      def work_until(pid, seconds)
        points = work_of(pid)
        return seconds if points.size < 2

        (from, low), (to, high) = points.each_cons(2).find { |_, (time, _)| time >= seconds } || points.last(2)
        [low + ((high - low) * (seconds - from) / (to - from)), 0].max
      end

      # @param pid [Integer]
      # @yieldparam one [Hash] the process in a moment
      # @yieldreturn [Numeric, nil]
      # @return [Array<Array(Float, Numeric)>] seconds since the first moment, and the block's value
      def points_of(pid)
        moments.filter_map do |moment|
          found = moment["processes"].find { |one| one["pid"] == pid }
          value = yield found if found
          [moment["at"] - moments.first["at"], value] if value
        end
      end

      def at_each_look(figure) = retention&.looks.to_a.filter_map { |look| look.analysis.public_send(figure) }
      private :at_each_look

      # @param bytes [Integer, nil]
      # @return [Float, nil] the bytes divided by these levels of the process with the looks, at the end
      def share(bytes, *levels)
        return unless looked_at && bytes

        whole = looked_at.readings.last.levels.values_at(*levels).compact.sum
        bytes.fdiv(whole) if whole.positive?
      end
      private :share

      def at_looks
        looks = retention&.looks or return
        values = looks.map { |look| yield look.analysis }
        Trend.new(looks.map { |look| look.at - looks.first.at }.zip(values)) if values.all?
      end
      private :at_looks

      # Figures between two counts of the agent repeat the last count.
      #
      # @return [Array<Array(Float, Hash)>] seconds since the first moment, and the figures of a new count
      def counts_of(pid, name)
        figures = points_of(pid) { |one| one["figures"] if one.dig("figures", name) }
        figures.chunk { |_, one| one[name] }.map { |_, same| same.first }
      end
      private :counts_of

      # The first count is left out, because it may be as old as the process.
      #
      # @return [Array<Array(Float, Numeric)>] seconds since the first moment, and the work until then
      def work_of(pid)
        @work ||= {}
        @work[pid] ||= begin
          counts = counts_of(pid, "allocated_objects").drop(1).map { |at, one| [at, one["allocated_objects"]] }
          counts.size < LEAST_WORK_COUNTS ? points_of(pid) { |one| one["cpu_seconds"] } : counts
        end
      end
      private :work_of

      # @return [Hash, nil] of Live::Limits, at the moment of the highest use
      def limit = moments.filter_map { |moment| moment["limit"] }.max_by { |one| one["used_bytes"].to_i }
    end
  end
end
