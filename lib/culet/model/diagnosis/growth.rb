# frozen_string_literal: true

require_relative "../retention/growth"
require_relative "observation"

module Culet
  class Diagnosis
    # Whether the memory in use of a process grows all the time, and of which kind that memory is.
    #
    # What counts is proven in this order: holders that keep more in each of several looks (Retention::Growth), lines
    # that allocate survivors in all periods (Profile::Growth), and the trend of what malloc and Ruby have in use. A
    # trend alone must last in the second half of the watch, at a load that does not rise; a boot and a cache that is
    # being filled slow down.
    class Growth
      # A smaller growth within the watch is none.
      LEAST_BYTES = 512 << 10
      LEAST_SHARE = 0.005
      # Of the test of native memory, where all memory in use rises as well.
      LEVEL_OF_BOTH = 0.05
      # Of the memory of objects: some have several blocks, and some classes of extensions do not report their size.
      UNREPORTED = 0.125
      # Of it, too: their blocks are smaller than what is added up for them.
      OVERREPORTED = 0.03
      # Where no look tells what is garbage.
      LEAST_SHARE_ALONE = 0.03
      # Spans of time whose lowest readings stand for what is in use after a collection.
      FLOORS = 6
      # The rate of the second half, at least, as a part of that of the first; and the load at most.
      LASTING = 1 / 3.0
      # Of what is reachable at few looks, which vary by what requests hold.
      LASTING_REACHABLE = 3 / 4.0
      # Of the growth, what the last step of one that has ended changes at most.
      ENDED = 0.02
      MOST_LOAD = 1.5
      # An object has a slot, and rarely more blocks of malloc than this.
      BLOCKS_PER_OBJECT = 4
      # Larger blocks are too few to tell from the noise of the number of objects.
      MOST_BLOCK_BYTES = 1024
      # Collections, at least, within which what stays becomes old; and major ones, within which old garbage goes.
      LEAST_COLLECTIONS = 12
      LEAST_MAJOR_COLLECTIONS = 2
      # A cache that fills slows down: what is added falls by this test, and is below this part of the first half in the
      # second.
      LEVEL_OF_SLOWING = 0.05
      SLOWING = 0.9
      # What a leak adds for the work that is done differs by less from step to step.
      UNEVEN = 0.05
      # The smallest slot, and the part of the growth in bytes that slots are at least, where the number of blocks is
      # not known.
      SLOT_BYTES = 40
      LEAST_SLOTS_SHARE = 0.05
      # Holders that are named: their number, and what each adds at least, as a part of what all of them add.
      HOLDERS = 3
      LEAST_HOLDER_SHARE = 0.1
      # Threads that a watch adds, at least, to be more than a pool's next one: one between two looks.
      LEAST_THREADS = Retention::Growth::LOOKS - 1
      # Objects of an extension may have much memory each.
      LEAST_INSTANCES = Retention::Growth::LOOKS - 1
      private_constant :LEAST_BYTES, :LEAST_SHARE, :LEVEL_OF_BOTH, :UNREPORTED, :OVERREPORTED, :LEAST_SHARE_ALONE,
                       :FLOORS, :LASTING, :LASTING_REACHABLE, :ENDED, :MOST_LOAD, :BLOCKS_PER_OBJECT,
                       :MOST_BLOCK_BYTES, :LEAST_COLLECTIONS, :LEAST_MAJOR_COLLECTIONS, :LEVEL_OF_SLOWING, :SLOWING,
                       :UNEVEN, :SLOT_BYTES, :LEAST_SLOTS_SHARE, :HOLDERS, :LEAST_HOLDER_SHARE, :LEAST_THREADS,
                       :LEAST_INSTANCES

      # @return [Observation]
      attr_reader :observation

      # @param observation [Observation]
      def initialize(observation)
        @observation = observation
      end

      # @return [Symbol] :ruby, :native, :objects (what objects keep grows, and no holder at each look), :unclear (it
      #   grows, and of which kind is not known), :undecided (it may be a boot, a cache that is being filled, or a
      #   higher load) or :none
      def verdict = @verdict ||= settled(by_holders || by_profile || by_trend)

      # @return [Boolean] whether it is a leak, of whichever kind
      def leak? = %i[ruby native unclear].include?(verdict)

      # @return [ObservedProcess, nil] the process that grows fastest
      def process = @process ||= observation.processes.max_by { |one| trend_of(one).rate }

      # @return [Trend] of its memory in use
      def trend = @trend ||= process ? trend_of(process) : Trend.new([])

      # @return [Boolean] whether neither the watch nor what is known from before has readings enough for a trend
      def short?
        [trend, (observation.history_of(process) if process)].compact.all? do |one|
          one.points.size < Trend::LEAST_POINTS
        end
      end

      # @param keeping [Array<Retention::Growth::Row>] holders; by default all that grow
      # @return [Array(Float, Float, Float)] bytes per minute, of all workers that grow alike, with the bounds of the
      #   95 % interval
      def per_minute(keeping = rows)
        found = if keeping.any? then kept(keeping)
                elsif verdict == :native && by_native == :native then observation.native
                elsif verdict == :objects then observation.reachable
                else trend
                end
        [found.rate, *found.interval].map { |bytes| bytes * 60 * worker_weight }
      end

      # @return [Numeric] as of Observation#worker_weight, of the process that grows
      def worker_weight = @worker_weight ||= observation.worker_weight((observation.looked_at || process).pid)

      # @return [Float] bytes that were added in the watch
      def bytes = trend.rate * trend.seconds

      # @return [Array<Retention::Growth::Row>] the holders that add most, the fastest first, but for stacks of
      #   threads that do not grow in number
      def holders
        least = LEAST_HOLDER_SHARE * rows.sum(&:growth_bytes)
        rows.first(HOLDERS).select { |row| row.growth_bytes >= least }
      end

      # @return [Profile::Row, nil] the line of the program that grows fastest; of a native leak, by native memory
      def site = (growing_lines.find { |row| !ruby_site?(row) } if verdict == :native) || growing_lines.first

      # @param holder [Retention::Growth::Row, nil] one of `holders`; nil: of all that grows
      # @return [String] ", in Page @lines, allocated in page.rb:11 by GET /search", as far as looks and a profile tell
      def origin(holder = nil)
        member = member(holder) if holder
        found = observation.retention.origin(holder) if holder
        found ||= "allocated in #{site.name}" if site && holders.size < 2
        [("in #{member}" if member), found].compact.map { |one| ", #{one}" }.join
      end

      # @param holder [Retention::Growth::Row] one of `holders`
      # @return [String, nil] as of Retention::Growth#member
      def member(holder) = observation.retention.member(holder)

      # @return [String] why what grows is native memory
      def native_reason
        return "libraries map it outside of malloc" if by_mappings == :native
        return "Ruby's objects do not grow in number" unless observation.retention

        looks = observation.retention
        kept = looks.classes(least: LEAST_INSTANCES).find { |row| !row.name.start_with?("(internal") }
        return "no Ruby object keeps it" unless kept

        keeper = looks.keeper_of(kept)
        "no Ruby object reports it; #{keeper ? keeper.keeps : "holders keep"} ever more #{kept.name} objects"
      end

      # @return [Float, nil] bytes of native memory per minute that grow beside Ruby objects that are kept, which may
      #   have them; nil: they are less than what the objects take
      def native_beside
        return unless verdict == :ruby && holders? && by_native == :native

        rate = observation.native.rate * 60 * worker_weight
        rate if rate > per_minute.first
      end

      # @return [Integer, nil] a Ruby process whose resident memory grows, and that was not read, as others were larger
      def unread
        return @unread if defined?(@unread)

        others = observation.moments.last["processes"].select { |one| one["ruby"] }.map { |one| one["pid"] }
        @unread = (others - observation.processes.map(&:pid)).find do |pid|
          resident = observation.resident_of(pid)
          floors = resident.floors(FLOORS)
          floors.rising? && large?(floors, of: resident.points.last.last) && lasting?(floors)
        end
      end

      # @return [Float] the smallest growth per minute that would have been found in most cases
      def detectable_per_minute
        [trend.interval.last - trend.rate, LEAST_SHARE_ALONE * in_use_bytes / [trend.seconds, 1].max].max * 60
      end

      private

      def trend_of(process) = (observation.in_use_of(process) || process.in_use).floors(FLOORS)

      def rows = @rows ||= observation.retention ? observation.retention.rows.reject { |row| stale?(row) } : []

      # Words on a stack may be left over from calls that have returned; stacks of ever more threads are not.
      def stale?(row) = row.stacks? && row.classes.none? { |one| one.name == "Thread" && one.objects >= LEAST_THREADS }

      # What the watch shows, in view of what was before it.
      def settled(found)
        before = process && observation.history_of(process) or return found
        return found unless by_mappings == :none # of which the history knows nothing

        floors = before.floors(FLOORS)
        rising = grew?(floors) && steady?(floors)
        case found
        when :none then rising ? :unclear : :none
        when :undecided then rising ? by_kind : :none
        else rising ? found : :undecided
        end
      end

      def by_kind = holders? ? :ruby : :unclear

      def holders? = rows.any?

      def by_holders
        return unless holders?

        load_rises? || filling?(kept_amount) ? :undecided : :ruby
      end

      # A table grows by leaps, its entries do not.
      #
      # @return [Trend] of the objects that growing holders keep; of bytes, where these are always as many
      def kept_amount = kept(rows, &(rows.sum(&:growth_objects).positive? ? :objects : :bytes))

      # A cache that fills takes less and less. So does a leak, by the second, on a machine that gets busier, but in
      # proportion to the work that is done.
      def filling?(amount)
        work = by_work(amount, observation.looked_at || process)
        slowing?(work) || (slowing?(amount) && !even?(work))
      end

      # @return [Trend] by the work that was done, not by time
      def by_work(trend, process)
        Trend.new(trend.points.map { |at, amount| [observation.work_until(process.pid, at), amount] })
      end

      def slowing?(trend)
        first, second = trend.halves.map(&:rate)
        falls = Trend.new(steps(trend).map { |at, rate| [at, -rate] })
        falls.probability <= LEVEL_OF_SLOWING && second < SLOWING * first
      end

      def even?(trend)
        rates = steps(trend).map(&:last)
        rates.any? && rates.max - rates.min <= UNEVEN * Statistics.median(rates)
      end

      # @return [Array<Array(Float, Float)>] the end of each step, and its rate
      def steps(trend)
        forward = trend.points.each_cons(2).select { |(from, _), (to, _)| to > from }
        forward.map { |(from, low), (to, high)| [to, (high - low) / (to - from)] }
      end

      # @yieldreturn [Array<Integer>] figures of a row, one at each look; by default its bytes
      # @return [Trend] of what growing holders keep
      def kept(keeping, &figures)
        figures ||= :bytes.to_proc
        looks = observation.retention.looks
        values = looks.each_index.map { |at| keeping.sum { |row| figures.call(row)[at] } }
        Trend.new(looks.map { |look| look.at - looks.first.at }.zip(values))
      end

      # Looks tell more: what grows may be a cache that is full soon.
      def by_profile
        return if observation.retention || growing_lines.empty?

        ruby_site?(growing_lines.first) ? :ruby : :native
      end

      # @return [Array<Profile::Row>] the fastest first
      def growing_lines
        return [] unless observation.profile && observation.growth.verdict == :growth

        @growing_lines ||= observation.profile.by(:growth, :place).select(&:grows?)
      end

      # Whether objects stay, too: extensions allocate by Ruby's functions as well.
      def ruby_site?(row)
        observation.profile.sites_of(row, :growth, :place).any? { |one| one.kind == :object && one.bytes.positive? }
      end

      def by_trend
        found = by_native
        return found if found == :native
        return by_mappings unless by_mappings == :none
        return found == :none ? by_reachable : found if process&.looked
        return found unless grew?(trend)
        return :undecided if !lasting?(trend) || slowing?(by_work(trend, process))

        kind
      end

      # Where the looks show no holder that keeps more, memory in use that grows is garbage, or native. The looks are
      # few: all memory in use rises with what is native, too.
      def by_native
        native = observation.native or return :none
        looked_at = observation.looked_at
        both = native.probability <= LEVEL_OF_BOTH && looked_at && trend_of(looked_at).rising?
        return :none unless (native.rising? || both) && large?(native, share: LEAST_SHARE)
        return :none unless certain?(native)

        lasting?(native) ? :native : :undecided
      end

      # Memory that is neither malloc's nor Ruby's. Looks would have shown an object that keeps it.
      def by_mappings
        mapped = process&.trend("other")&.floors(FLOORS)
        return :none unless mapped && grew?(mapped)
        return :undecided unless lasting?(mapped)

        observation.retention ? :native : :unclear
      end

      # A buffer that doubles leaps at few looks, a cache may evict less than it adds, and a stack is no proof.
      def by_reachable
        kept = observation.reachable
        return :none unless kept && kept.probability <= LEVEL_OF_BOTH && large?(kept)
        return :objects if lasting?(kept, LASTING_REACHABLE)

        lasting?(kept) && !ended?(kept) ? :undecided : :none
      end

      def ended?(trend)
        first, *, before, last = trend.points.map(&:last)
        (last - before).abs <= ENDED * (last - first)
      end

      # Native memory seems to grow while objects do, since Ruby does not report all of their memory, and while they go,
      # since it reports too much.
      def certain?(native)
        objects = observation.objects.points.map(&:last)
        [-UNREPORTED, OVERREPORTED].all? do |share|
          points = native.points.zip(objects).map { |(at, bytes), others| [at, bytes + (share * others)] }
          Trend.new(points).probability <= LEVEL_OF_BOTH
        end
      end

      def grew?(trend) = trend.rising? && large?(trend)

      def large?(trend, share: LEAST_SHARE_ALONE, of: in_use_bytes)
        trend.rate * trend.seconds >= [LEAST_BYTES, share * of].max
      end

      def in_use_bytes = process ? trend.points.last.last : 0

      def lasting?(trend, least = LASTING) = steady?(trend, least) && !load_rises?

      def steady?(trend, least = LASTING)
        first, second = trend.halves.map(&:rate)
        second >= least * first
      end

      def load_rises?
        load = observation.load
        load.size == 3 && load == load.sort && load.last > MOST_LOAD * load.first
      end

      # Of a process whose agent was to look, and did not come to it, no kind is guessed.
      def kind
        return :unclear if observation.agent? || process.collected(:collections) < LEAST_COLLECTIONS

        old = process.old_objects.floors(FLOORS)
        return :ruby if old.rising? && process.collected(:major_collections) >= LEAST_MAJOR_COLLECTIONS && most?(old)

        native?(old) ? :native : :unclear
      end

      # Whether objects whose number grows are what grows.
      def most?(old)
        return old.rate * SLOT_BYTES >= LEAST_SLOTS_SHARE * trend.rate unless process.blocks?

        old.rate * BLOCKS_PER_OBJECT >= blocks_rate
      end

      def native?(old)
        process.blocks? && old.interval.last * BLOCKS_PER_OBJECT < blocks_rate &&
          trend.rate < MOST_BLOCK_BYTES * blocks_rate
      end

      def blocks_rate = process.blocks.floors(FLOORS).rate
    end
  end
end
