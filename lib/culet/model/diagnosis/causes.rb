# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "../thresholds"
require_relative "observation"

module Culet
  class Diagnosis
    # Name => title of each figure.
    EVIDENCE_TITLES = { "growth_bytes_per_minute" => "growth per minute", "in_use_bytes" => "in use",
                        "total_bytes" => "all processes",
                        "malloc_free_bytes" => "malloc: free", "malloc_used_bytes" => "malloc: in use",
                        "ruby_free_bytes" => "Ruby: free slots", "ruby_objects_bytes" => "Ruby: objects",
                        "unshared_bytes" => "copied by workers", "inherited_bytes" => "inherited by workers",
                        "workers" => "workers",
                        "garbage_bytes" => "garbage", "reachable_bytes" => "reachable",
                        "peak_bytes" => "at the peak", "usual_bytes" => "usually",
                        "unused_bytes" => "code that never ran", "iseq_bytes" => "compiled code",
                        "limit_bytes" => "limit", "used_bytes" => "in use of it" }.freeze
    private_constant :EVIDENCE_TITLES

    # A figure that decides: name, value, and the 95 % interval where it has one.
    Evidence = Struct.new(:name, :value, :low, :high, keyword_init: true) do
      # @return [String]
      def title = EVIDENCE_TITLES.fetch(name)

      # @return [String] the value, as text
      def amount = name == "workers" ? value.to_s : Text::Size.human(value.round)

      # @return [String, nil] "1.2 MB to 3.4 MB"; nil without an interval
      def interval
        bounds = [low, high]
        bounds.map { |bound| Text::Size.human(bound.round) }.join(" to ") if bounds.all? { |bound| bound&.finite? }
      end

      # @return [Hash{String => Object}] for JSON, without bounds that are not finite
      def document = { "name" => name, "value" => whole(value), "low" => whole(low), "high" => whole(high) }

      private

      def whole(number)
        return number unless number.is_a?(Float)

        number.finite? ? number.round : nil
      end
    end

    # Why processes are larger than their work needs. name: a verdict; bytes: what is at stake; sentence: the verdict in
    # words; evidence: the figures that decide.
    Cause = Struct.new(:name, :bytes, :sentence, :evidence, keyword_init: true) do
      # @return [Boolean, nil] whether the processes have shared nothing from the start
      attr_accessor :never_shared
    end

    # The causes that a process tree shows, beside growth.
    class Causes
      # Garbage that is usual: Ruby collects after some 32 MB of malloc at most (RUBY_GC_MALLOC_LIMIT_MAX).
      GARBAGE_BYTES = 32_000_000
      # Of the peak: a swing of the memory in use that such garbage does not explain.
      SWING_SHARE = 0.25
      # Of what workers inherited.
      LEAST_LOST = 0.5
      # A worker that was not forked from a loaded application could share so much of what it has in use.
      SHAREABLE = 0.5
      # Workers of one kind differ by less; their parent has less than this part of what they have if it loaded nothing.
      ALIKE = 0.5
      OWN_SHARE = 0.5
      RUBY = %w[ruby_free_slots ruby_page_overhead].freeze
      private_constant :GARBAGE_BYTES, :SWING_SHARE, :LEAST_LOST, :SHAREABLE, :ALIKE, :OWN_SHARE, :RUBY

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
        @all ||= [bloat, malloc_free, ruby_heap, garbage, sharing, code].compact.sort_by { |cause| -cause.bytes }
      end

      # @param name [String] of a cause
      # @return [Numeric] bytes that make it the verdict
      def least(name)
        share = Thresholds::CAUSE_SHARES.fetch(name, Thresholds::CAUSE_SHARE)
        [Thresholds::CAUSE_BYTES, share * @observation.total_bytes].max
      end

      private

      def cause(name, bytes, sentence, *evidence)
        figures = evidence.map { |title, value| Evidence.new(name: title, value: value) }
        Cause.new(name: name, bytes: bytes.round, sentence: sentence, evidence: figures)
      end

      def human(bytes) = Text::Size.human(bytes.round)

      def total = @observation.total_bytes

      # The work itself needs much more now and then.
      def bloat
        peak, usual = [*in_use_swings, resident_swing].compact.max_by { |high, low| high - low }
        return unless peak && peak - usual >= [GARBAGE_BYTES, SWING_SHARE * peak].max

        cause("bloat", peak - usual,
              "bloat: the work itself needs #{human(peak - usual)} more at its peaks (#{human(peak)}) than usually " \
              "(#{human(usual)})",
              ["peak_bytes", peak], ["usual_bytes", usual], ["total_bytes", total])
      end

      def in_use_swings = @observation.processes.select(&:blocks?).map { |process| swing(process.in_use) }

      def resident_swing = swing(@observation.resident)

      # @return [Array(Integer, Integer), nil] the highest value, and the lowest one behind it
      def swing(trend)
        values = trend.points.map(&:last)
        return if values.size < 4

        # A rise that stays is growth, not a swing.
        peak = values.each_index.max_by { |at| values[at] }
        after = values.drop(peak).min
        [values[peak], after]
      end

      def malloc_free
        free = @observation.private_bytes("malloc_free")
        used = @observation.private_bytes("malloc_used")
        return if free.zero?

        cause("malloc_free", free - (Thresholds::MALLOC_RESERVE * used),
              "malloc keeps #{human(free)} of free memory, #{percent(free)} of all that the processes use#{between}",
              ["malloc_free_bytes", free], ["malloc_used_bytes", used], ["total_bytes", total])
      end

      # culet returns all else within a second.
      def between
        ", between blocks in use" if @observation.members.all? { |member| member.snapshot.allocator.name == "culet" }
      end

      def ruby_heap
        free = @observation.private_bytes(*RUBY)
        live = @observation.private_bytes("ruby_objects")
        return if free.zero?

        cause("ruby_heap", free - (Thresholds::SLOT_RESERVE * live),
              "the Ruby heap is sparse: #{human(free)} of its pages are free slots, beside #{human(live)} of objects" \
              "#{settings_note}",
              ["ruby_free_bytes", free], ["ruby_objects_bytes", live], ["total_bytes", total])
      end

      # What waits for a collection, at the looks. A collector that is not held back collects after 32 MB.
      def garbage
        looks = @observation.retention&.looks or return
        bytes = Statistics.median(looks.map { |look| look.analysis.unreachable_bytes })
        live = looks.last.analysis.total_bytes
        cause("ruby_heap", bytes - GARBAGE_BYTES,
              "the collector runs late: #{human(bytes)} are garbage, beside #{human(live)} in use#{settings_note}",
              ["garbage_bytes", bytes], ["reachable_bytes", live], ["total_bytes", total])
      end

      def settings_note
        names = @observation.setups.flat_map { |one| one.collector.keeping_slots }.uniq.sort
        return inflated_note if names.empty?

        "; #{Text::Lines.list(names)} #{names.size == 1 ? "is" : "are"} set"
      end

      def inflated_note = ("; #{@observation.collector.sentence}" if @observation.inflated?)

      def sharing = lost_sharing || never_shared

      # A worker that serves copies some of what it inherited, whatever is done before the fork.
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
        sizes = group.map { |member| in_use(member) }.sort
        could = SHAREABLE * sizes.first * (group.size - 1)
        found = cause(
          "sharing", could,
          "nothing is shared: each of the #{group.size} workers loaded the program by itself, " \
          "#{human(sizes.first)} or more each",
          ["workers", group.size], ["in_use_bytes", sizes.first], ["total_bytes", total]
        )
        found.tap { |one| one.never_shared = true }
      end

      # Workers of one parent that are much larger than it, and alike: what they have was loaded behind the fork.
      def siblings
        groups = @observation.members.group_by(&:parent_pid).values.select { |group| group.size > 1 }
        groups.find { |group| alike?(group) && in_use(parent_of(group)) < OWN_SHARE * in_use(group.first) }
      end

      def parent_of(group) = @observation.members.find { |member| member.pid == group.first.parent_pid }

      def alike?(group)
        sizes = group.map { |member| in_use(member) }.sort
        sizes.first.positive? && sizes.first >= ALIKE * sizes.last
      end

      # @return [Integer] 0 for a process that is not known
      def in_use(member)
        member ? SnapshotLevels.new(member.snapshot).levels.values_at(*ObservedProcess::IN_USE).sum : 0
      end

      def code
        return unless @unused

        bytes = @unused["unused_bytes"]
        cause("code", bytes,
              "#{human(bytes)} of #{human(@unused["iseq_bytes"])} of compiled code never ran",
              ["unused_bytes", bytes], ["iseq_bytes", @unused["iseq_bytes"]], ["total_bytes", total])
      end

      def percent(bytes) = "#{total.zero? ? 0 : (100 * bytes.fdiv(total)).round} %"
    end
  end
end
