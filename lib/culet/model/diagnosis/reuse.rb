# frozen_string_literal: true

module Culet
  class Diagnosis
    # Measures the part of malloc's free memory that a process uses again during a watch, for
    # verdicts and savings.
    #
    # A page that is free at one reading may be in use at the next one. Each page is counted by the readings at which a
    # block of it was in use: once, twice, or more often. Other pages may have been in use between two readings; their
    # number is estimated as the number of unseen species (A. Chao, "Nonparametric Estimation of the Number of Classes
    # in a Population", 1984; of m samples, 1987).
    class Reuse
      # A reading. used, free: bytes of malloc; trim: free bytes that a trim would return; masks: a bit for each page
      # with a block in use, by start of the region; minor, major: collections so far, or nil.
      Reading = Struct.new(:used, :free, :trim, :masks, :minor, :major, keyword_init: true) do
        # @return [Integer] bytes of malloc
        def bytes = used + free
      end

      # Pages in use at some readings, by the number of readings.
      class Pages
        # Pages in use at one, two, and this number of readings or more are counted.
        TIMES = 3
        private_constant :TIMES

        # @param readings [Array<Reading>]
        def initialize(readings)
          @count = 0
          @seen = Array.new(TIMES) { Hash.new(0) }
          readings.each { |reading| add(reading.masks) }
        end

        # @param masks [Hash{Integer => Integer}] of a reading
        def add(masks)
          @count += 1
          masks.each do |start, mask|
            @seen.each { |seen| seen[start], mask = seen[start] | mask, seen[start] & mask }
          end
        end

        # @return [Integer] pages that were in use at a reading
        def size = Pages.sum(@seen.first)

        # @return [Numeric] estimated number of pages that were in use between readings only
        def unseen
          sums = @seen.map { |seen| Pages.sum(seen) }
          once, twice = sums.each_cons(2).map { |one, other| one - other }
          (@count - 1) * once * once / (2 * @count * [twice, 1].max)
        end

        # @param masks [Hash{Integer => Integer}]
        # @return [Integer]
        def self.sum(masks) = masks.each_value.sum { |mask| mask.to_s(2).count("1") }
      end
      private_constant :Pages

      # A smaller probability is neglected.
      RARE = 0.05
      private_constant :RARE

      def initialize = @readings = []

      # @param snapshot [Scope::Snapshot]
      # @param levels [Hash{String => Integer}] of SnapshotLevels
      def add(snapshot, levels)
        return unless snapshot.malloc && snapshot.allocator.blocks?

        @page_bytes = snapshot.process.page_bytes
        masks = snapshot.regions.select(&:malloc?).to_h { |region| [region.start, mask(region)] }
        @readings << Reading.new(used: levels["malloc_used"], free: levels["malloc_free"], masks: masks,
                                 trim: snapshot.malloc.trim_bytes, minor: snapshot.ruby&.minor_gcs,
                                 major: snapshot.ruby&.major_gcs)
      end

      # @return [Boolean] whether there is more than one reading
      def known? = @readings.size > 1

      # @return [Float] free bytes, in the mean of the readings
      def free_bytes = mean(&:free)

      # Memory that stays free for more than a second or two; at least the pages that are free at two readings in a row.
      # Memory that a collection has just freed is in use again soon, in other pages.
      #
      # @return [Array<Numeric>] bytes in the mean of the readings: expected, at least, at most
      def steady_bytes
        least = (resident_bytes - lately_bytes).clamp(0, free_bytes)
        [(least + free_bytes) / 2, least, free_bytes]
      end

      # @return [Float] the expected share of the free memory at the end that stays free
      def steady_share
        last = known? ? @readings.last.free : 0
        last.zero? ? 1.0 : [steady_bytes.first / last, 1.0].min
      end

      # @return [Integer] bytes of all pages with a block in use, at the reading with most of them
      def peak_bytes = busy.max

      # @return [Float] bytes of malloc, used and free, in the mean of the readings
      def resident_bytes = mean(&:bytes)

      # Memory that culet/auto would return, in the mean of the readings: memory that is free after a major collection,
      # until it is in use again.
      #
      # @return [Array<Numeric>] bytes: expected, at least, at most
      def trimmed_bytes
        return unused if @readings.any? { |reading| reading.major.nil? } || collections(:minor, :major).zero?

        expected, least, most = behind_trims.transpose.map { |values| trimmable * values.sum / values.size }
        # The probability that no major collection comes in as long a time: a program under load then saves nothing.
        none = Math.exp(-collections(:major))
        [(1 - none) * expected, none > RARE ? 0 : [least, expected].min, most]
      end

      private

      def mean(&) = @readings.sum(&).fdiv(@readings.size)

      # @return [Float] bytes of pages in use at a reading or the previous one, in the mean of the readings
      def lately_bytes
        lately = @readings.each_cons(2).map { |pair| Pages.new(pair).size * @page_bytes }
        lately.sum.fdiv(lately.size)
      end

      def busy = @busy ||= @readings.map { |reading| Pages.sum(reading.masks) * @page_bytes }

      # @return [Integer] collections between the first and the last reading; 0 if the counts were reset, as by an exec
      def collections(*names) = names.sum { |name| [@readings.last[name] - @readings.first[name], 0].max }

      # Memory that is free during the whole watch, as after a single trim before it: expected, at least, at most. Some
      # pages that no reading has seen in use are used between readings.
      def unused
        pages = Pages.new(@readings)
        most = [resident_bytes - (pages.size * @page_bytes), 0].max
        least = [most - (pages.unseen * @page_bytes), 0].max
        [(least + most) / 2, least, most]
      end

      # A trim may come right after the reading before its collection, right before the next one, or only at every
      # other collection. A busy program uses half of the trimmed memory again within a second or two, so the
      # first case is expected. Before the first trim all pages count that the program uses in the watch.
      #
      # @return [Array<Array<Numeric>>] free bytes at each reading: expected, at least, at most
      def behind_trims
        since = before = latest = whole = Pages.new(@readings)
        @readings.each_cons(2).map do |earlier, later|
          if later.major > earlier.major
            before = since
            since = Pages.new([earlier])
            latest = Pages.new([])
          end
          [since, before, latest].each { |pages| pages.add(later.masks) unless pages.equal?(whole) }
          needed = [since.size + since.unseen, before.size + before.unseen, latest.size]
          needed.map { |pages| [later.bytes - (pages * @page_bytes), 0].max }
        end
      end

      # @return [Float] the share of pages without a block in use that a trim returns: not the pages in which a free
      #   block begins
      def trimmable
        free = @readings.sum(&:bytes) - busy.sum
        free.positive? ? [@readings.sum(&:trim).fdiv(free), 1.0].min : 1.0
      end

      # @return [Integer] a bit for each page, the lowest one for the first page: regions grow at their end
      def mask(region)
        region.fill_runs.map { |pages, used| (used.zero? ? "0" : "1") * pages }.join.reverse.to_i(2)
      end
    end
  end
end
