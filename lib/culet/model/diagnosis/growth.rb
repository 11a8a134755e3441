# frozen_string_literal: true

require_relative "../retention/growth"
require_relative "observation"

module Culet
  class Diagnosis
    # Decides whether the memory in use of a process grows steadily, and whether Ruby objects or native blocks grow.
    #
    # The evidence, the strongest first: holders that keep more at each of several looks (Retention::Growth), lines that
    # allocate survivors in all periods (Profile::Growth), and the trend of the memory in use of malloc and Ruby. A
    # trend counts only if it lasts in the second half of the watch without a rising load, because a boot and a cache
    # that fills slow down.
    class Growth
      # Minimum growth within the watch, in bytes and as a share of the memory in use.
      LEAST_BYTES = 512 << 10
      LEAST_SHARE = 0.005
      # Significance level of the trend of native memory, if all memory in use also rises.
      LEVEL_OF_BOTH = 0.05
      # Share of the memory of objects that Ruby does not report: some objects have several blocks, and some classes of
      # extensions do not report their size.
      UNREPORTED = 0.125
      # Share by which Ruby reports more than the size of the blocks.
      OVERREPORTED = 0.03
      # Minimum growth as a share of the memory in use, without looks that tell objects from garbage.
      LEAST_SHARE_ALONE = 0.03
      # Number of time spans. The lowest reading of each span is close to the memory in use after a collection.
      FLOORS = 6
      # Minimum rate of the second half, as a part of the rate of the first half.
      LASTING = 1 / 3.0
      # Minimum rate of the second half for reachable memory at few looks, which vary with the requests, as a part of the
      # rate of the first half.
      LASTING_REACHABLE = 3 / 4.0
      # Maximum last step of a growth that has ended, as a part of the growth.
      ENDED = 0.02
      # Maximum load at the end of the watch, as a multiple of the load at the start.
      MOST_LOAD = 1.5
      # An object has a slot, and rarely more than this number of malloc blocks.
      BLOCKS_PER_OBJECT = 4
      # With larger blocks, growth is too few blocks to stand out from changes in the number of objects.
      MOST_BLOCK_BYTES = 1024
      # Collections that are needed for survivors to become old, and major ones that are needed to free old garbage.
      LEAST_COLLECTIONS = 12
      LEAST_MAJOR_COLLECTIONS = 2
      # A growth slows down if its steps fall at this significance level, and the rate of the second half is below this
      # part of the rate of the first half.
      LEVEL_OF_SLOWING = 0.05
      SLOWING = 0.9
      # Maximum difference between the steps of a leak in proportion to the work, as a part of their median.
      UNEVEN = 0.05
      # Without counts of blocks: the smallest slot in bytes, and the minimum share of slots in the growth.
      SLOT_BYTES = 40
      LEAST_SLOTS_SHARE = 0.05
      # Maximum number of named holders, and the minimum share of each in the growth of all holders.
      HOLDERS = 3
      LEAST_HOLDER_SHARE = 0.1
      # Minimum number of new threads for a leak of threads, one between two looks; a pool may add fewer.
      LEAST_THREADS = Retention::Growth::LOOKS - 1
      # Minimum number of new objects of a class of an extension, each of which may have much native memory.
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

      # @return [Symbol] :ruby, :native, :objects (reachable memory grows, but no holder at each look), :unclear (growth
      #   of an unknown kind), :undecided (growth that may be a boot, a cache that fills, or a higher load) or :none
      def verdict = @verdict ||= settled(by_holders || by_profile || by_trend)

      # @return [Boolean] whether the growth is a leak of any kind
      def leak? = %i[ruby native unclear].include?(verdict)

      # @return [ObservedProcess, nil] the process that grows fastest
      def process = @process ||= observation.processes.max_by { |one| trend_of(one).rate }

      # @return [Trend] of the memory in use of `process`
      def trend = @trend ||= process ? trend_of(process) : Trend.new([])

      # @return [Boolean] whether the watch and the history have too few readings for a trend
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

      # @return [Array<Retention::Growth::Row>] the holders that add most, the fastest first, without stacks of a
      #   constant number of threads
      def holders
        least = LEAST_HOLDER_SHARE * rows.sum(&:growth_bytes)
        rows.first(HOLDERS).select { |row| row.growth_bytes >= least }
      end

      # @return [Profile::Row, nil] the line of the program that grows fastest; of a native leak, by native memory
      def site = (growing_lines.find { |row| !ruby_site?(row) } if verdict == :native) || growing_lines.first

      # @param holder [Retention::Growth::Row, nil] one of `holders`; nil: of all that grows
      # @return [String] ", in Page @lines, allocated in page.rb:11 by GET /search"; parts that are not known are
      #   omitted
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

      # @return [Float, nil] growth of native memory in bytes per minute beside a leak of Ruby objects, which may own
      #   the native memory; nil if the objects themselves grow faster
      def native_beside
        return unless verdict == :ruby && holders? && by_native == :native

        rate = observation.native.rate * 60 * worker_weight
        rate if rate > per_minute.first
      end

      # @return [Integer, nil] a Ruby process whose resident memory grows, and that was not read because it is not among
      #   the largest
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

      # References on a stack may be left over from calls that have returned, unless the number of threads grows.
      def stale?(row) = row.stacks? && row.classes.none? { |one| one.name == "Thread" && one.objects >= LEAST_THREADS }

      # Corrects the verdict of the watch by the history.
      def settled(found)
        before = process && observation.history_of(process) or return found
        return found unless by_mappings == :none # the history has no mappings

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

      # Counts objects rather than bytes, because the buffer of a table doubles.
      #
      # @return [Trend] of the objects that growing holders keep; of bytes, if the number of objects is constant
      def kept_amount = kept(rows, &(rows.sum(&:growth_objects).positive? ? :objects : :bytes))

      # A cache that fills slows down. A leak on a machine that gets busier slows down too, but in proportion to the
      # work of the program.
      def filling?(amount)
        work = by_work(amount, observation.looked_at || process)
        slowing?(work) || (slowing?(amount) && !even?(work))
      end

      # @return [Trend] over the work of the process instead of time
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
      # @return [Trend] of the sum over the holders
      def kept(keeping, &figures)
        figures ||= :bytes.to_proc
        looks = observation.retention.looks
        values = looks.each_index.map { |at| keeping.sum { |row| figures.call(row)[at] } }
        Trend.new(looks.map { |look| look.at - looks.first.at }.zip(values))
      end

      # Looks take precedence, because they can show that a cache is nearly full.
      def by_profile
        return if observation.retention || growing_lines.empty?

        ruby_site?(growing_lines.first) ? :ruby : :native
      end

      # @return [Array<Profile::Row>] the fastest first
      def growing_lines
        return [] unless observation.profile && observation.growth.verdict == :growth

        @growing_lines ||= observation.profile.by(:growth, :place).select(&:grows?)
      end

      # Whether objects of the site survive. A Ruby line without them allocates native memory in an extension.
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

      # If no holder grows at the looks, growing memory in use is garbage or native. Because looks are few, a weaker
      # trend of native memory is enough if all memory in use also rises.
      def by_native
        native = observation.native or return :none
        looked_at = observation.looked_at
        both = native.probability <= LEVEL_OF_BOTH && looked_at && trend_of(looked_at).rising?
        return :none unless (native.rising? || both) && large?(native, share: LEAST_SHARE)
        return :none unless certain?(native)

        lasting?(native) ? :native : :undecided
      end

      # Memory outside malloc and Ruby's heap. Looks would have shown an object that keeps a mapping.
      def by_mappings
        mapped = process&.trend("other")&.floors(FLOORS)
        return :none unless mapped && grew?(mapped)
        return :undecided unless lasting?(mapped)

        observation.retention ? :native : :unclear
      end

      # Growth of reachable memory without a growing holder: a buffer that doubles, a cache that evicts too little, or
      # references on a stack.
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

      # Native memory is a difference, and Ruby reports the memory of objects inexactly: the trend must remain if
      # objects had UNREPORTED more or OVERREPORTED less memory.
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

      # With an agent that did not finish its looks, the kind stays unknown instead of a guess.
      def kind
        return :unclear if observation.agent? || process.collected(:collections) < LEAST_COLLECTIONS

        old = process.old_objects.floors(FLOORS)
        return :ruby if old.rising? && process.collected(:major_collections) >= LEAST_MAJOR_COLLECTIONS && most?(old)

        native?(old) ? :native : :unclear
      end

      # Whether the growing number of old objects explains the growth.
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
