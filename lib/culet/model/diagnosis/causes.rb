# frozen_string_literal: true

require_relative "../../text/lines"
require_relative "../../text/numbers"
require_relative "../kept_sites"
require_relative "../thresholds"
require_relative "evidence"
require_relative "observation"
require_relative "swing"

module Culet
  class Diagnosis
    # The causes of the size of a process tree, except growth.
    class Causes
      # Normal amount of garbage: Ruby collects after some 32 MB of malloc at most (RUBY_GC_MALLOC_LIMIT_MAX).
      GARBAGE_BYTES = 32_000_000
      # Minimum swing of the memory in use, as a share of the peak, that garbage does not explain.
      SWING_SHARE = 0.2
      # Minimum share of the inherited memory that workers have unshared.
      LEAST_LOST = 0.5
      # A request or job causes the peaks if it runs at the peaks more often than at other times, by this share of them.
      MOSTLY = 0.5
      # The smallest of several like workers has at least this part of the largest. A parent that has loaded nothing has
      # less than the second part of a worker's memory.
      ALIKE = 0.5
      OWN_SHARE = 0.65
      RUBY = %w[ruby_free_slots ruby_page_overhead].freeze
      private_constant :GARBAGE_BYTES, :SWING_SHARE, :MOSTLY, :LEAST_LOST, :ALIKE, :OWN_SHARE, :RUBY

      # @param observation [Observation]
      # @param unused [Hash, nil] as of `culet requires --unused --json`
      def initialize(observation, unused: nil)
        @observation = observation
        @unused = unused
      end

      # @return [Array<Cause>] those with enough at stake for a verdict, the largest first
      def list = all.select { |cause| cause.bytes >= least(cause.name) }

      # @return [Array<Cause>] all, the largest first
      def all
        @all ||= [bloat, malloc_free, ruby_heap, unreachable, garbage, sharing, code].compact.sort_by { |c| -c.bytes }
      end

      # @param name [String] of a cause
      # @return [Numeric] bytes that make it the verdict
      def least(name)
        share = Thresholds::CAUSE_SHARES.fetch(name, Thresholds::CAUSE_SHARE)
        [Thresholds::CAUSE_BYTES, share * @observation.total_bytes].max
      end

      # @return [Swing, nil] the largest peak of pieces of work
      def work
        @work ||= [*swings, *large_swings { |process| @observation.resident_of(process.pid) }]
                  .select { |swing| work?(swing) }.max_by(&:bytes)
      end

      # @return [Boolean] whether memory in use rises and falls, and neither work nor garbage is known to be the reason
      def unclear? = all_swings.any? { |swing| unclear_swing?(swing) }

      # @return [KeptSites::Origin, nil] where most of such peaks was allocated; nil: no profile tells
      def work_origin
        profile = @observation.profile or return
        live = profile.by(:live, :place).to_h { |row| [row.name, row.bytes] }
        most = profile.by(:peak, :place).reject(&:own?).max_by { |row| row.bytes - live.fetch(row.name, 0) } or return
        labels = profile.sites_of(most, :peak, :place).max_by(&:bytes).labels
        KeptSites::Origin.new(most.name, labels, most.share)
      end

      private

      def cause(name, bytes, sentence, *evidence)
        figures = evidence.map { |title, value| Evidence.new(name: title, value: value) }
        Cause.new(name: name, bytes: bytes.round, sentence: sentence, evidence: figures)
      end

      def human(bytes) = Text::Size.human(bytes)

      def total = @observation.total_bytes

      # Some requests or jobs need much more memory than others.
      def bloat
        return unless work

        cause("bloat", work.bytes + kept_for_work,
              "bloat: the work itself needs #{human(work.bytes)} more at its peaks (#{human(work.peak)}) than " \
              "usually (#{human(work.usual)})#{origin_note}#{kept_note}",
              ["peak_bytes", work.peak], ["usual_bytes", work.usual], ["total_bytes", total])
      end

      # @return [Array<Swing>] of the memory in use, without unclear ones
      def swings = all_swings.reject { |swing| unclear_swing?(swing) }

      def all_swings = @all_swings ||= large_swings { |process| @observation.in_use_of(process) }

      # Without looks, readings cannot tell frequent bursts of work from garbage.
      def unclear_swing?(swing) = @observation.retention.nil? && swing.frequent?

      # Whether requests or jobs cause a swing. Looks prove this if the reachable memory differs between them, and
      # exclude it if only garbage differs in a program whose collector runs late. Otherwise the form of the rise
      # decides.
      def work?(swing)
        looks = @observation.retention&.looks.to_a.map(&:analysis)
        half = swing.bytes / 2
        return true if peak?(looks.map(&:total_bytes), half)

        swing.burst? && !(held_back? && range(looks.map(&:unreachable_bytes)) >= half)
      end

      # Whether values fall, or only the last one is higher. With rising traffic neither is the case.
      def peak?(values, bytes)
        *before, last = values
        values.each_index.any? { |at| values[at] - values.drop(at).min >= bytes } ||
          (before.any? && last - before.max >= bytes)
      end

      def range(values) = values.max.to_i - values.min.to_i

      # @yieldparam process [ObservedProcess]
      # @yieldreturn [Trend, nil]
      # @return [Array<Swing>] those that usual garbage does not explain
      def large_swings
        found = @observation.processes.filter_map { |process| (trend = yield process) && Swing.of(process, trend) }
        found.select { |swing| swing.bytes >= [GARBAGE_BYTES, SWING_SHARE * swing.peak].max }
      end

      def origin_note
        return ", #{work_origin}" if work_origin

        ", while #{work_label} runs" if work_label
      end

      # @return [String, nil] label of the request or job that runs mostly at the peaks; nil: not known
      def work_label
        high, low = work.points.partition { |_, bytes| bytes > work.usual + (work.bytes / 2) }
        running = [high, low].map { |points| shares(points.map(&:first)) }
        label, share = running.first.max_by { |name, part| part - running.last.fetch(name, 0) }
        label if share && share - running.last.fetch(label, 0) >= MOSTLY
      end

      # @param seconds [Array<Float>] of the watch
      # @return [Hash{String => Float}] label => the share of these times at which it ran
      def shares(seconds)
        times = seconds.map { |at| @observation.moments.first["at"] + at }
        events = @observation.history&.events(work.process).to_a.group_by(&:label)
        events.transform_values { |some| times.count { |t| some.any? { |one| one.at?(t) } }.fdiv([times.size, 1].max) }
      end

      def kept_note
        ", and malloc keeps #{human(kept_for_work)} behind them" if kept_for_work >= Thresholds::CAUSE_BYTES
      end

      # Free memory that a peak explains: in each arena, at most the size of the peak.
      def kept_for_work
        @kept_for_work ||= @observation.parts.sum do |part|
          free = part.bytes("malloc_free") + ((1 - used_share) * part.bytes("malloc_unsplit"))
          frees = part.snapshot.arenas.map(&:free_bytes)
          frees = [free] if frees.empty?
          [free, frees.sum { |bytes| [bytes, work.bytes].min }].min
        end
      end

      def malloc_free
        free = (steady_share * @observation.private_bytes("malloc_free")) + ((1 - used_share) * unsplit)
        used = @observation.private_bytes("malloc_used") + (used_share * unsplit)
        return if free.zero?

        cause("malloc_free", free - (Thresholds::MALLOC_RESERVE * used) - (work ? kept_for_work : 0),
              "malloc keeps #{human(free)} of free memory, #{percent(free)} of all that the processes use#{between}",
              ["malloc_free_bytes", free], ["malloc_used_bytes", used], ["total_bytes", total])
      end

      # The share of free memory that stays free. Memory that a collection has just freed is used again soon.
      #
      # @return [Float] the lowest share of all processes
      def steady_share = @observation.processes.map { |process| process.reuse.steady_share }.min || 1.0

      def unsplit = @observation.private_bytes("malloc_unsplit")

      # @return [Float] the share in use of a malloc that the reader reads by pages only; 1 if not known
      def used_share = @observation.used_share || 1.0

      # culet's allocator returns free pages within a second, so its free memory lies between blocks in use.
      def between
        ", between blocks in use" if @observation.members.all? { |member| member.snapshot.allocator.name == "culet" }
      end

      def ruby_heap
        free = @observation.private_bytes(*RUBY)
        live = @observation.private_bytes("ruby_objects")
        return if free + live <= @observation.initial_heap_bytes

        cause("ruby_heap", free - (Thresholds::SLOT_RESERVE * live),
              "the Ruby heap is sparse: #{human(free)} of its pages are free slots, beside #{human(live)} of objects" \
              "#{settings_note}",
              ["ruby_free_bytes", free], ["ruby_objects_bytes", live], ["total_bytes", total])
      end

      # Free slots and garbage in slots, which a large heap keeps for long.
      def unreachable
        share = @observation.reachable_share or return
        pages = @observation.private_bytes(*RUBY_HEAP)
        live = share * pages
        return if pages <= @observation.initial_heap_bytes

        cause("ruby_heap", pages - ((1 + Thresholds::HEAP_RESERVE) * live),
              "the Ruby heap is sparse: #{human(pages - live)} of its pages are free slots or garbage, beside " \
              "#{human(live)} of objects in use#{settings_note}",
              ["ruby_free_bytes", pages - live], ["ruby_objects_bytes", live], ["total_bytes", total])
      end

      # Garbage beyond the normal amount of a collector with default settings.
      def garbage
        bytes, live = [waiting, added_up].compact.max
        return unless bytes

        cause("ruby_heap", bytes - GARBAGE_BYTES,
              "the collector runs late: #{human(bytes)} are garbage, beside #{human(live)} in use" \
              "#{settings_note(@observation.remedies.keeping)}",
              ["garbage_bytes", bytes], ["reachable_bytes", live], ["total_bytes", total])
      end

      # @return [Array(Numeric, Integer), nil] garbage and live objects at the looks
      def waiting
        looks = @observation.retention&.looks or return
        garbage = looks.map { |look| look.analysis.unreachable_bytes }
        [held_back? ? garbage.max : Statistics.median(garbage), looks.last.analysis.total_bytes]
      end

      def held_back?
        @observation.remedies.keeping.any? || @observation.inflated? || @observation.collector&.disabled?
      end

      # @return [Array(Numeric, Numeric), nil] bytes of garbage before a collection, and bytes in use after it
      def added_up
        swing = swings.reject { |one| work?(one) }.max_by(&:bytes)
        [swing.bytes, swing.usual] if swing
      end

      def settings_note(names = @observation.remedies.keeping_slots)
        return inflated_note if names.empty?

        "; #{Text::Lines.list(names)} #{names.size == 1 ? "is" : "are"} set"
      end

      def inflated_note = ("; #{@observation.collector.sentence}" if @observation.inflated?)

      def sharing = lost_sharing || never_shared

      # Below LEAST_LOST, unsharing is normal: a worker that serves requests always copies some inherited memory.
      def lost_sharing
        workers = @observation.workers
        return if workers.empty?

        totals = workers.map { |worker| worker.breakdown.total }
        lost = totals.sum(&:unshared)
        inherited = totals.sum(&:inherited)
        return if lost < LEAST_LOST * inherited

        cause("sharing", lost,
              "sharing is lost after the fork: #{Text::Numbers.count(workers.size, "worker")} copied " \
              "#{human(lost)} of the #{human(inherited)} they inherited",
              ["unshared_bytes", lost], ["inherited_bytes", inherited], ["total_bytes", total])
      end

      # Siblings that each load the program by themselves, as Puma's workers do without preload_app!.
      def never_shared
        group = siblings or return
        least = group.map { |member| in_use(member) }.min
        loaded = [least - [in_use(parent_of(group)), Thresholds::SMALL_BYTES].max, 0].max
        found = cause(
          "sharing", loaded * (group.size - 1),
          "the workers share little: each of the #{group.size} loaded #{human(loaded)} by itself after the fork",
          ["workers", group.size], ["loaded_bytes", loaded], ["total_bytes", total]
        )
        found.tap { |one| one.never_shared = true }
      end

      # Like workers that are much larger than their parent: they loaded their memory after the fork.
      def siblings
        groups = @observation.members.group_by(&:parent_pid).values.select { |group| group.size > 1 }
        groups.find do |group|
          least, most = group.map { |member| in_use(member) }.minmax
          least.positive? && least >= ALIKE * most && in_use(parent_of(group)) < OWN_SHARE * least
        end
      end

      def parent_of(group) = @observation.members.find { |member| member.pid == group.first.parent_pid }

      # The minimum of the second half of the watch: garbage accumulates until a collection, and a worker may still be
      # booting at the start.
      #
      # @return [Numeric] bytes; 0 for an unknown process
      def in_use(member)
        return 0 unless member

        watched = @observation.processes.find { |process| process.pid == member.pid }
        all = watched ? watched.readings.map(&:levels) : [SnapshotLevels.new(member.snapshot).levels]
        all.last((all.size + 1) / 2).map do |levels|
          levels.values_at(*HEAP_IN_USE).sum - ((1 - used_share) * levels["malloc_unsplit"])
        end.min
      end

      def code
        return unless @unused

        bytes = @unused["unused_bytes"]
        cause("code", bytes,
              "#{human(bytes)} of #{human(@unused["iseq_bytes"])} of compiled code never ran",
              ["unused_bytes", bytes], ["iseq_bytes", @unused["iseq_bytes"]], ["total_bytes", total])
      end

      def percent(bytes) = Text::Numbers.percent(bytes, total, digits: 0)
    end
  end
end
