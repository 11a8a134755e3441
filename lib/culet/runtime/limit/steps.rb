# frozen_string_literal: true

module Culet
  module Limit
    # The steps of the ladder. Each has a name; `due?` says whether it can help now, `call` does it and returns a detail
    # for the log, nil, or :nothing if there was nothing to do; `freed` says what it freed; `relieved` says that the
    # usage is below the alarm level.
    #
    # @api private
    module Steps
      # What all steps share.
      class Step
        # @return [String]
        attr_reader :name

        # @param name [String]
        def initialize(name)
          @name = name
        end

        # @param used_share [Float] used bytes by the limit
        # @return [Boolean] whether it can help now
        def due?(used_share) = used_share.positive?

        # @param share [Float] of the limit, that its last call freed
        # @param used_share [Float] used bytes by the limit after it
        # @return [void]
        def freed(share, used_share); end

        # @return [void]
        def relieved = nil
      end

      # Returns free memory of malloc to the kernel.
      class Trim < Step
        def initialize = super("trim")

        # @return [nil]
        def call = Steps.quietly_trim
      end

      # The program's own blocks.
      class Callbacks < Step
        # @param blocks [Array<Proc>]
        # @param log [#call] gets a line about each that fails
        def initialize(blocks, log)
          super("callbacks")
          @blocks = blocks
          @log = log
        end

        # @return [Boolean]
        def due?(_used_share) = @blocks.any?

        # @return [String]
        def call
          blocks = @blocks.dup
          blocks.each do |block|
            block.call
          rescue StandardError => e
            @log.call("culet: a callback of Culet::Limit.on(:pressure) failed: #{e.class}: #{e.message.lines.first}")
          end
          Steps.quietly_trim
          "#{blocks.size} of them"
        end
      end

      # A major collection and a trim, at a boundary if one comes soon. Collections take at most a twentieth of the
      # time, near the limit a fifth. After one that freed next to nothing the next waits twice as long, unless more is
      # in use: all processes of a group collect, and would leave no processor time for those that are to end.
      class Collection < Step
        SHARE = 20
        URGENT_SHARE = 5
        URGENT = 0.9
        # How long to wait for a boundary, in seconds.
        PATIENCE = 0.25
        # Less, as a share of the limit, is next to nothing; so much more in use is a change.
        LEAST = 0.01
        CHANGE = 0.02
        LONGEST_FACTOR = 16
        private_constant :LEAST, :CHANGE, :LONGEST_FACTOR

        # @param boundary [Boundary]
        def initialize(boundary)
          super("collection")
          @boundary = boundary
          @ended = @took = @used_share = 0
          @factor = 1
        end

        # @return [Boolean]
        def due?(used_share)
          factor = used_share >= @used_share + CHANGE ? 1 : @factor
          Steps.now >= @ended + (@took * (used_share >= URGENT ? URGENT_SHARE : SHARE) * factor)
        end

        # @return [void]
        def freed(share, used_share)
          @factor = share < LEAST ? [@factor * 2, LONGEST_FACTOR].min : 1
          @used_share = used_share
        end

        # @return [void]
        def relieved = @factor = 1

        # @return [String]
        def call
          began = Steps.now
          at_boundary = @boundary.run(PATIENCE) { began = collect }
          began = collect unless at_boundary
          @ended = Steps.now
          @took = @ended - began
          at_boundary ? "between requests" : "at once"
        end

        private

        # @return [Float] the time when it began
        def collect
          Steps.now.tap do
            GC.start
            Steps.quietly_trim
          end
        end
      end

      module_function

      # @return [Float] seconds
      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)

      # @return [nil]
      def quietly_trim
        Culet.trim
        nil
      rescue Error
        nil # this malloc has no such call
      end
    end
  end
end
