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
    # Levels of Ruby and of malloc that the program has not freed, as far as its malloc tells.
    HEAP_IN_USE = %w[ruby_objects malloc_used malloc_unsplit].freeze
    # With memory that libraries map by themselves.
    IN_USE = [*HEAP_IN_USE, "other"].freeze
    # Levels of Ruby's own pages.
    RUBY_HEAP = %w[ruby_objects ruby_free_slots ruby_page_overhead].freeze
    # Levels that a process shares with its children alone, not with other programs.
    OWN = (Levels::TITLES.keys - %w[libraries_and_files other unexplained]).freeze
    # Counts by an agent, at least, that tell peaks from garbage, and how much work is done.
    LEAST_COUNTS = 12
    LEAST_WORK_COUNTS = 4

    # What was read of one process while it was watched: its levels again and again, and its whole memory at the end.
    class ObservedProcess
      # One reading. at: seconds since the watch began; levels: bytes by name; blocks: how many are in use; old_objects:
      # how many Ruby counts as old, collections, major_collections: how many there were, or nil.
      Reading = Struct.new(:at, :levels, :blocks, :old_objects, :collections, :major_collections)

      # @return [Integer]
      attr_reader :pid
      # @return [String]
      attr_reader :title
      # @return [Integer, nil] when it started, in ticks: what tells it from another process of its number
      attr_reader :start_ticks
      # @return [Array<Reading>] in the order of time
      attr_reader :readings
      # @return [Scope::Snapshot, nil] the last one
      attr_reader :snapshot
      # @return [Reuse]
      attr_reader :reuse
      # @return [Boolean, nil] whether enough looks have shown what keeps its memory
      attr_accessor :looked

      # @param levels [Hash{String => Integer}, nil] as of Levels.counted
      # @return [Integer, nil] bytes in use; nil: Ruby or malloc does not tell
      def self.counted(levels)
        values = levels.to_h.values_at(*HEAP_IN_USE).compact
        values.sum if values.size > 1
      end

      # @param pid [Integer]
      # @param title [String]
      # @param start_ticks [Integer, nil] when it started
      def initialize(pid, title, start_ticks = nil)
        @pid = pid
        @title = title
        @start_ticks = start_ticks
        @readings = []
        @reuse = Reuse.new
      end

      # @param at [Float] seconds since the watch began
      # @param memory [SnapshotLevels]
      # @return [Reading]
      def add(at, memory)
        @snapshot = snapshot = memory.snapshot
        blocks = snapshot.sizes ? snapshot.sizes["buckets"].sum { |bucket| bucket[1] } : 0
        levels = memory.levels
        @reuse.add(snapshot, levels)
        Reading.new(at, levels, blocks, *counts(snapshot.ruby)).tap { |reading| @readings << reading }
      end

      # @return [Boolean] whether used and free memory of its malloc are told apart
      def blocks? = snapshot.allocator.blocks?

      # @param names [Array<String>] levels
      # @return [Trend] their sum over time
      def trend(*names) = Trend.new(readings.map { |one| [one.at, one.levels.values_at(*names).sum] })

      # @return [Trend] of the memory that is in use, or of what malloc and Ruby have, unless `blocks?`
      def in_use = trend(*IN_USE)

      # Garbage fills the slots that a lazy sweep has not freed yet, so the number of objects hardly changes; what is
      # old has survived collections.
      #
      # @return [Trend] of the number of old objects; 0, where it is not known
      def old_objects = Trend.new(readings.map { |one| [one.at, one.old_objects.to_i] })

      # @return [Trend] of the number of blocks of malloc in use
      def blocks = Trend.new(readings.map { |one| [one.at, one.blocks] })

      # @param counter [Symbol] :collections or :major_collections
      # @return [Integer] how many there were during the watch; 0, where that is not known
      def collected(counter) = readings.filter_map(&counter).minmax.then { |least, most| most.to_i - least.to_i }

      private

      def counts(ruby)
        return [] unless ruby&.major_gcs

        [ruby.old_objects, ruby.minor_gcs + ruby.major_gcs, ruby.major_gcs]
      end
    end

    # What was read of a process tree while it was watched.
    #
    # seconds: how long; moments: Hashes of Live::Sampler, one a second; processes: ObservedProcess, the largest first;
    # tree: a Cow::ProcessTree of the end; collector: CollectorLimits of the largest process, or nil; retention:
    # Retention::Growth of the process in which holders or native memory grow most, or nil; profile: Profile::Data, or
    # nil; growth: Profile::Growth of it, or nil; history: History, or nil; looks_late: whether most looks at each
    # process are missing; problems: sentences.
    Observation = Struct.new(:seconds, :moments, :processes, :tree, :collector, :retention, :profile, :growth,
                             :history, :looks_late, :problems, keyword_init: true) do
      # @param process [ObservedProcess]
      # @return [Trend, nil] of its memory in use, from before the watch on; nil: no more is known than the watch tells
      def history_of(process) = history&.trend(process, seconds)

      # @param process [ObservedProcess]
      # @return [Trend, nil] of its memory in use, by its blocks, or by what its malloc tells the agent; nil: not known
      def in_use_of(process)
        return process.in_use if process.blocks?

        counts = counts_of(process.pid, "malloc_used_bytes")
        points = counts.filter_map { |at, one| ObservedProcess.counted(one["levels"])&.then { |bytes| [at, bytes] } }
        Trend.new(points) if points.size >= LEAST_COUNTS
      end

      # @return [ObservedProcess, nil] the one in which holders or native memory grow most, of those that were looked at
      def looked_at
        pid = retention&.analysis&.pid
        processes.find { |one| one.pid == pid }
      end

      # @return [Boolean] whether an agent has answered
      def agent? = moments.any? { |moment| moment["processes"].any? { |one| one["figures"] } }

      # @return [Trend, nil] of what malloc has in use and no object has, at the looks; nil where malloc does not tell
      def native = at_looks(&:native_bytes)

      # @return [Trend, nil] of what is reachable at the looks; nil: nobody looked
      def reachable = at_looks(&:total_bytes)

      # @return [Trend, nil] of all objects at the looks, garbage included; nil: nobody looked
      def objects = at_looks { |analysis| analysis.total_bytes + analysis.unreachable_bytes }

      # @return [Float, nil] which part of the Ruby heap's pages is reachable, at the look where most is; nil: nobody
      #   looked
      def reachable_share = share(at_each_look(:slot_bytes).max, *RUBY_HEAP)

      # @return [Float, nil] which part of malloc's memory is in use when most is; nil: nobody looked, or levels tell
      def used_share
        counts = points_of(looked_at&.pid) { |one| one.dig("figures", "malloc_used_bytes") }.map(&:last)
        share(at_each_look(:malloc_in_use_bytes).push(*counts).max, "malloc_unsplit")&.clamp(0.0, 1.0)
      end

      # A child that ends before it is read has a part of its parent's PSS.
      #
      # @return [Integer] bytes of all processes at the end, shared pages counted once
      def total_bytes = [tree.total_pss_bytes, private_bytes(*OWN)].max

      # @return [Array<Cow::ForkedProcess>] the processes whose memory could be read
      def members = tree.read_members

      # @return [Array<Cow::ForkedProcess>] those that share what their parent had at the fork
      def workers = members.select(&:forked)

      # @return [Array<Savings::Part>] of all of them
      def parts = @parts ||= members.map(&:part)

      # @param names [Array<String>] levels
      # @return [Integer] bytes of all processes, without what they share with their parent
      def private_bytes(*names) = parts.sum { |part| part.bytes(*names) }

      # @return [Integer] bytes of the Ruby heaps that were not forked, up to which they grow without a collection
      def initial_heap_bytes
        sizes = (members - workers).flat_map { |member| member.snapshot.ruby&.slots || [] }
        Thresholds::INITIAL_HEAP_BYTES * sizes.count { |size| size["pages"].positive? }
      end

      # @return [Remedies] for the processes whose memory could be read
      def remedies
        @remedies ||= Remedies.new(members.map { |member| Setup.of(member.snapshot) }, forks: workers.any?)
      end

      # @return [Boolean] whether the program has made its collector's limits large
      def inflated? = !collector.nil? && collector.inflated?(processes.first.snapshot.process.rss_bytes)

      # Not of PSS: while the copy of a look lives, it shares the memory of its process.
      #
      # @param pid [Integer]
      # @return [Trend] of its resident memory
      def resident_of(pid) = Trend.new(points_of(pid) { |one| one["rss_bytes"] })

      # Workers of one parent do the same, some more of it than others.
      #
      # @param pid [Integer]
      # @return [Numeric] the growth of resident memory of its parent's workers over its own; their number, where its
      #   own does not grow; 1: it is no worker
      def worker_weight(pid)
        last = moments.last["processes"]
        parent = last.find { |one| one["pid"] == pid }&.fetch("parent_pid")
        return 1 if last.none? { |one| one["pid"] == parent }

        rates = last.select { |one| one["parent_pid"] == parent }
                    .to_h { |one| [one["pid"], [resident_of(one["pid"]).rate, 0].max] }
        own = rates.fetch(pid)
        own.positive? ? (rates.values.sum / own).clamp(1, rates.size) : rates.size
      end

      # @return [Array<Float>] the work that the processes do per second in each third of the watch
      def load
        return [] if moments.size < 4

        third = (moments.last["at"] - moments.first["at"]) / 3.0
        pids = moments.last["processes"].map { |one| one["pid"] }.select { |pid| work_of(pid).size > 1 }
        sums = (0..3).map { |mark| pids.sum { |pid| work_until(pid, mark * third) } }
        sums.each_cons(2).map { |before, after| (after - before) / third }
      end

      # @param pid [Integer]
      # @param seconds [Float] since the first moment
      # @return [Float] the work that the process had done until then: the objects that it had allocated, or its
      #   processor time, where these were not counted often enough; the seconds, where neither is known
      def work_until(pid, seconds)
        points = work_of(pid)
        return seconds if points.size < 2

        (from, low), (to, high) = points.each_cons(2).find { |_, (time, _)| time >= seconds } || points.last(2)
        [low + ((high - low) * (seconds - from) / (to - from)), 0].max
      end

      # @param pid [Integer]
      # @yieldparam one [Hash] the process in a moment
      # @yieldreturn [Numeric, nil]
      # @return [Array<Array(Float, Numeric)>] seconds since the first moment, and what the block returns
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
      # @return [Float, nil] which part they are of levels of the process that was looked at, at the end
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

      # The agent counts in proportion to what a count costs; figures in between have the last one.
      #
      # @return [Array<Array(Float, Hash)>] seconds since the first moment, and the figures of a new count
      def counts_of(pid, name)
        figures = points_of(pid) { |one| one["figures"] if one.dig("figures", name) }
        figures.chunk { |_, one| one[name] }.map { |_, same| same.first }
      end
      private :counts_of

      # The first count may be as old as the process.
      #
      # @return [Array<Array(Float, Numeric)>] seconds since the first moment, and the work that was done until then
      def work_of(pid)
        @work ||= {}
        @work[pid] ||= begin
          counts = counts_of(pid, "allocated_objects").drop(1).map { |at, one| [at, one["allocated_objects"]] }
          counts.size < LEAST_WORK_COUNTS ? points_of(pid) { |one| one["cpu_seconds"] } : counts
        end
      end
      private :work_of

      # @return [Hash, nil] of Live::Limits, of the moment that was closest to it
      def limit = moments.filter_map { |moment| moment["limit"] }.max_by { |one| one["used_bytes"].to_i }
    end
  end
end
