# frozen_string_literal: true

require_relative "../../model/batch_growth"
require_relative "growth_report"
require_relative "kept_memory"
require_relative "memory_in_use"

module Culet
  module Limits
    # Whether the memory that this process has in use grows with each call of a block.
    #
    # The calls are made in batches; after each the process is collected and read. What grows in a series of batches
    # must grow in a second one too, at no less than half the rate, so that a cache that is being filled has time to be
    # full.
    class MemoryGrowth
      BATCHES = 20
      # Batches of the warm-up: objects are old after three collections, and tables of malloc and Ruby have grown.
      WARM_UP_BATCHES = 5
      # Bytes a call that are no growth: what Ruby notes for each collection is divided among the calls of a batch. The
      # smallest block of malloc has 8 bytes, in jemalloc.
      LEAST_BYTES = 4
      LASTING = 0.5
      private_constant :WARM_UP_BATCHES, :LASTING

      # Figures that are read and tested after each batch.
      FIGURES = %i[malloc slots].freeze

      # @param times [Integer] calls of a series, at least
      # @param warm_up [Integer, nil] calls before the first series, at least; nil: a quarter of `times`
      # @yield the work
      # @raise [ArgumentError] for fewer than 20 calls, or an invalid warm-up
      def initialize(times: 200, warm_up: nil, &work)
        raise ArgumentError, "a block is required: the work that is repeated" unless work
        unless times.is_a?(Integer) && times >= BATCHES
          raise ArgumentError, "times is a number of calls, at least #{BATCHES}, not #{times.inspect}"
        end
        unless warm_up.nil? || (warm_up.is_a?(Integer) && !warm_up.negative?)
          raise ArgumentError, "warm_up is a number of calls, not #{warm_up.inspect}"
        end

        @calls = times.fdiv(BATCHES).ceil
        @warm_up = (warm_up || times / 4).fdiv(WARM_UP_BATCHES).ceil
        @work = work
        @memory = MemoryInUse.new
      end

      # Calls the block until the verdict is clear.
      def grows?
        series(WARM_UP_BATCHES, @warm_up)
        @first = series(BATCHES, @calls)
        return false unless FIGURES.any? { |figure| trend(@first, figure).grows? }

        @second = series(BATCHES, @calls)
        FIGURES.any? { |figure| lasting?(figure) }
      end

      # @return [String, nil] why the verdict covers less than it could
      def restriction
        return if @memory.counted?

        "#{@memory.allocator} does not tell how much memory is in use, so growth is judged by Ruby's objects alone"
      end

      # Calls the block as often again, and on culet's allocator twice, to find what is kept.
      #
      # @return [String] by how much memory grows, and what is kept
      def explanation
        report = GrowthReport.new(@second, calls: @calls)
        calls = BATCHES * @calls
        report.text(objects: KeptMemory.objects(calls, report.per_call, &@work), blocks: blocks(calls, report))
      end

      private

      # @return [Hash{Symbol => Array<Integer>}] by figure, the readings before the first batch and after each
      def series(batches, calls)
        readings = { malloc: Array.new(batches + 1), slots: Array.new(batches + 1), objects: Array.new(batches + 1) }
        read(readings, 0)
        1.upto(batches) do |batch|
          calls.times { @work.call }
          read(readings, batch)
        end
        readings
      end

      def read(readings, at)
        @memory.collect
        readings.each_key { |figure| readings[figure][at] = @memory.public_send(figure) }
      end

      def blocks(calls, report) = lasting?(:malloc) ? KeptMemory.blocks(calls, report.per_call, &@work) : []

      def trend(readings, figure) = BatchGrowth.new(readings.fetch(figure), calls: @calls, least: LEAST_BYTES)

      def lasting?(figure)
        before = trend(@first, figure)
        after = trend(@second, figure)
        before.grows? && after.grows? && after.per_call >= LASTING * before.per_call
      end
    end
  end
end
