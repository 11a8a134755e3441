# frozen_string_literal: true

require_relative "analysis"

module Culet
  module Retention
    # Which holders keep more and more, by several looks at one process.
    #
    # A holder grows where all of this is true of the looks:
    # - it keeps more in all steps from one look to the next but one, and in the last one;
    # - no step takes away more than a tenth of what the steps add up to;
    # - the last step adds at least a quarter of the average one, and the second half of them a quarter of all: a cache
    #   that is being filled slows down;
    # - the sum is at least 64 KiB, and 0.05 % of all that is retained.
    #
    # One buffer that is filled without end grows by leaps, as Ruby doubles it. So a holder whose objects stay as many
    # grows also where it leaps three times, once in the second half, and never shrinks.
    #
    # Random changes by the load go up and down: of seven figures in a random order, fewer than one in 1,000 pass
    # for growth. A cache without a bound that is not full yet looks like a leak, and a longer time tells them apart.
    class Growth
      # Looks at a process; fewer tell a cache that is filled from a leak only by chance.
      LOOKS = 7
      LEAST_LOOKS = 5
      LEAST_BYTES = 64 << 10
      LEAST_SHARE = 0.0005
      # Instances of a class.
      LEAST_OBJECTS = 50
      # Parts of the sum that a step may take away, that the second half must add, and of the average step the last one.
      MOST_LOST = 0.1
      LEAST_LATE = 0.25
      LEAST_LAST = 0.25
      # Leaps of a buffer: their number, and the factor of each.
      LEAST_LEAPS = 3
      LEAST_LEAP = 1.4
      # Classes of a row.
      CLASSES = 10
      private_constant :LEAST_LOOKS, :LEAST_BYTES, :LEAST_SHARE, :LEAST_OBJECTS, :MOST_LOST, :LEAST_LATE, :LEAST_LAST,
                       :LEAST_LEAPS, :LEAST_LEAP, :CLASSES

      # at: seconds on the monotonic clock
      Look = Struct.new(:at, :analysis)

      # Of what has bytes and objects in each of the looks.
      module Changes
        # @return [Integer] from the first look to the last
        def growth_bytes = bytes.last - bytes.first

        # @return [Integer]
        def growth_objects = objects.last - objects.first
      end

      # The memory that the holders of one key keep at each look. keeper: the largest holder in the last look; count:
      # their number then; classes: changes by class.
      Row = Struct.new(:key, :keeper, :count, :bytes, :objects, :classes) do
        include Changes

        # @return [Boolean] whether stacks of threads keep it
        def stacks? = keeper.respond_to?(:stale?) && keeper.stale?

        # @return [String] for a sentence
        def title = stacks? ? "a growing set of #{count} threads" : keeper.title

        # @return [String] "constant Shop::CACHE keeps"
        def keeps = "#{title} #{stacks? || keeper.is_a?(Holder) ? "keeps" : "keep"}"
      end

      # Changes of a class; bytes and objects in each of the looks.
      ClassRow = Struct.new(:name, :bytes, :objects) { include Changes }

      # Holders or sets beyond the listed ones.
      #
      # @private
      Rest = Struct.new(:title, :bytes) do
        def name = title

        def kind = "other"

        def paths = []

        def place = nil
      end

      # Sums over the holders of one key in one look.
      Sum = Struct.new(:bytes, :objects, :keepers, :classes)
      private_constant :Changes, :Rest, :Sum

      # @param all [Array<Growth>] one of each process
      # @return [Growth, nil] of the process in which holders keep more, or native code does; nil: the looks are too few
      def self.largest(all)
        all.select(&:known?).max_by { |one| [one.rows.sum(&:growth_bytes), one.native_growth_bytes] }
      end

      attr_reader :looks
      # @return [KeptSites, nil] which sites of the process's profile the holders of the last look have objects of
      attr_accessor :sites

      # @param looks [Array<Look>] in the order of time
      def initialize(looks)
        raise ArgumentError, "there is no look" if looks.empty?

        @looks = looks
      end

      # @return [Analysis] of the last look
      def analysis = looks.last.analysis

      # @return [Float] from the first look to the last
      def seconds = looks.last.at - looks.first.at

      # @return [String] "growth", "none", or "unknown" where the looks are too few
      def verdict
        return "unknown" unless known?

        rows.empty? ? "none" : "growth"
      end

      # @return [Boolean] whether there are enough looks to tell
      def known? = looks.size >= LEAST_LOOKS && seconds.positive?

      # @return [Integer] of all that is retained, from the first look to the last
      def total_growth_bytes = analysis.total_bytes - looks.first.analysis.total_bytes

      # @return [Integer] of native memory, from the first look to the last; 0 where malloc does not tell
      def native_growth_bytes = analysis.native_bytes.to_i - looks.first.analysis.native_bytes.to_i

      # @return [Integer] the smallest growth that counts
      def least_bytes = [LEAST_BYTES, (LEAST_SHARE * analysis.total_bytes).ceil].max

      # @param amount [Integer] of the whole time
      # @return [Float]
      def per_minute(amount) = seconds.positive? ? 60.0 * amount / seconds : 0.0

      # @return [Array<Row>] holders and sets that grow, the fastest first
      def rows = @rows ||= all.select { |row| grows?(row) }.sort_by { |row| -row.growth_bytes }

      # @return [KeptSites::Origin, nil] where most of what it keeps was allocated; nil: not known
      def origin(row) = sites&.origin { |keeper| key(keeper) == row.key }

      # @param row [Row] one of `rows`
      # @return [String, nil] "Prices @by_customer": what adds most of it, where the holder leads there by other objects
      def member(row)
        return unless row.keeper.is_a?(Holder)

        before = looks.first.analysis.holders.select { |one| key(one) == row.key }.flat_map { |one| one.path.steps }
        before = before.to_h { |step| [step.address, step.bytes] }
        row.keeper.path.last_member do |step|
          step.bytes.to_i - (before[step.address] || step.bytes).to_i > row.growth_bytes / 2
        end
      end

      # @param least [Integer] the smallest growth in number that counts
      # @return [Array<ClassRow>] classes whose instances grow in number, the most bytes first
      def classes(least: LEAST_OBJECTS)
        classes_of_looks.select { |row| Growth.steady?(row.objects, least, times: looks.map(&:at)) }
                        .sort_by { |row| [-row.growth_bytes, -row.growth_objects] }
      end

      # @param found [ClassRow] one of `classes`
      # @return [Row, nil] the holder of most of the instances that came; nil: several share them
      def keeper_of(found)
        all.find { |row| row.classes.sum { |one| one.name == found.name ? one.objects : 0 } > found.growth_objects / 2 }
      end

      # @param figures [Array<Integer>] one of each look
      # @param least [Integer] the smallest sum that counts
      # @param times [Array<Numeric>] when they were; by default at equal distances
      # @return [Boolean] whether they grow all the time
      def self.steady?(figures, least, times: figures.each_index.to_a)
        return false if figures.size < LEAST_LOOKS

        steps = steps(figures, times)
        sum = figures.last - figures.first
        late = steps.last(steps.size / 2).sum
        sum >= least && steps.count(&:positive?) >= steps.size - 1 && steps.min >= -MOST_LOST * sum &&
          late >= LEAST_LATE * sum && steps.last >= LEAST_LAST * sum / steps.size
      end

      # On a busy machine the looks are at unequal distances.
      def self.steps(figures, times)
        mean = (times.last - times.first) / (times.size - 1).to_f
        figures.each_cons(2).zip(times.each_cons(2)).map do |(one, other), (from, to)|
          (other - one) * (to > from ? mean / (to - from) : 1.0)
        end
      end
      private_class_method :steps

      # @param figures [Array<Integer>] one of each look
      # @param least [Integer] the smallest sum that counts
      # @return [Boolean] whether they rise in leaps, as the size of a buffer does, and never fall
      def self.leaping?(figures, least)
        pairs = figures.each_cons(2).to_a
        leaps = pairs.reject { |one, other| one == other }
        figures.size >= LEAST_LOOKS && figures.last - figures.first >= least && leaps.size >= LEAST_LEAPS &&
          leaps.all? { |one, other| other >= LEAST_LEAP * one } && pairs.last(pairs.size / 2).intersect?(leaps)
      end

      # Holders with one key are one row: closures of one line, and names that differ by a number.
      #
      # @param keeper [Holder, HolderSet]
      # @return [Array] Row#key
      def key(keeper)
        keeper = lasting(keeper) if keeper.is_a?(HolderSet)
        if keeper.is_a?(HolderSet)
          return ["set", *lasting_of(keeper).map { |one| key(one) }.sort_by(&:inspect)]
        end
        return [keeper.kind, keeper.place] if %w[closure method].include?(keeper.kind) && keeper.place

        [keeper.kind, keeper.name.gsub(/\d+/, "0"), keeper.place]
      end

      private

      def grows?(row)
        Growth.steady?(row.bytes, least_bytes, times: looks.map(&:at)) ||
          (row.objects.uniq.size == 1 && Growth.leaping?(row.bytes, least_bytes))
      end

      def all
        @all ||= looks.map { |look| sums(look.analysis) }.then do |sums|
          sums.last.map { |key, last| row(key, sums, last) }
        end
      end

      def row(key, sums, last)
        found = sums.each_with_index.map { |one, at| one.fetch(key) { absent(looks[at].analysis, last) } }
        changes = last.classes.map do |name, (objects, bytes)|
          before = found.first.classes.fetch(name, [0, 0])
          Instances.new(name, objects - before[0], bytes - before[1])
        end
        largest = changes.select { |one| one.bytes.positive? }.max_by(CLASSES, &:bytes)
        Row.new(key, last.keepers.max_by(&:bytes), last.keepers.size, found.map(&:bytes), found.map(&:objects), largest)
      end

      # The figures of an unlisted holder: at most those of the smallest listed one.
      def absent(analysis, last)
        most = analysis.other_holders.count.zero? ? 0 : analysis.holders.last&.bytes.to_i
        Sum.new([most, last.bytes].min, 0, [], {})
      end

      def sums(analysis)
        found = Hash.new { |all, key| all[key] = Sum.new(0, 0, [], Hash.new { |list, name| list[name] = [0, 0] }) }
        analysis.holders.each { |one| add(found[key(one)], one) }
        analysis.sets.each { |set| add(found[key(set)], set, lasting(set)) }
        { "other holders" => analysis.other_holders,
          "sets of other holders" => analysis.other_sets }.each do |title, rest|
          found[[title]] = Sum.new(rest.bytes, rest.objects, [Rest.new(title, rest.bytes)], {}) if rest.count.positive?
        end
        found
      end

      # @return [Array<Holder>] without those that belong to a thread, unless all do
      def lasting_of(set)
        lasting = set.holders.reject(&:running?)
        lasting.empty? ? set.holders.reject(&:stale?) : lasting
      end

      # What a constant keeps together with a stack or a variable of a thread, which is running through it, is the
      # constant's.
      #
      # @return [Holder, HolderSet]
      def lasting(set)
        lasting = lasting_of(set)
        set.holders.size == set.size && lasting.size == 1 ? lasting.first : set
      end

      def add(sum, keeper, shown = keeper)
        sum.bytes += keeper.bytes
        sum.objects += keeper.objects
        sum.keepers |= [shown]
        keeper.classes.each do |one|
          sum.classes[one.name][0] += one.objects
          sum.classes[one.name][1] += one.bytes
        end
      end

      def classes_of_looks
        counts = looks.map { |look| look.analysis.classes.to_h { |one| [one.name, one] } }
        counts.last.keys.map do |name|
          found = counts.map { |one| one[name] || Instances.new(name, 0, 0) }
          ClassRow.new(name, found.map(&:bytes), found.map(&:objects))
        end
      end
    end
  end
end
