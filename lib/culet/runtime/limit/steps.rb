# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # The steps of the escalation. Each has a name; `due?` says whether it can help now, `call` does it and returns a
    # detail for the log, nil, or :nothing if there was nothing to do; `freed` is told what a step that
    # frees memory freed and how long it took; `relieved` is called while the usage is below the alarm level.
    #
    # @api private
    module Steps
      # What all steps share.
      class Step
        attr_reader :name

        def initialize(name)
          @name = name
          @backoff = Backoff.new
        end

        # @param used_share [Float] used bytes by the limit
        # @return [Boolean] whether it can help now
        def due?(used_share) = @backoff.due?(Clock.now, used_share)

        # @param share [Float] of the limit, that its last call freed
        # @param used_share [Float] used bytes by the limit after it
        # @param took [Float] seconds
        def freed(share, used_share, took)
          @backoff.note(Clock.now, took * pause_factor(used_share), share, used_share)
        end

        # @return [void]
        def relieved = nil

        # @return [Boolean] whether it frees memory by itself, and not what is done because of it
        def frees? = true

        # @return [Boolean] whether `relieved` is to be called although no pass was needed
        def pending? = false

        private

        # A step takes at most one part of so many of the time.
        def pause_factor(_used_share) = 10
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

        def due?(used_share) = @blocks.any? && super

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
      # time, near the limit a fifth.
      class Collection < Step
        SHARE = 20
        URGENT_SHARE = 5
        URGENT = 0.9
        # How long to wait for a boundary, in seconds.
        PATIENCE = 0.25

        def initialize(boundary)
          super("collection")
          @boundary = boundary
        end

        # @return [String]
        def call
          began = Clock.now
          at_boundary = @boundary.run(PATIENCE) { began = collect }
          began = collect unless at_boundary
          @took = Clock.now - began
          at_boundary ? "between requests" : "at once"
        end

        # The wait for a boundary costs nothing.
        def freed(share, used_share, _took) = super(share, used_share, @took)

        private

        def pause_factor(used_share) = used_share >= URGENT ? URGENT_SHARE : SHARE

        # @return [Float] the time when it began
        def collect
          Clock.now.tap do
            GC.start
            Steps.quietly_trim
          end
        end
      end

      module_function

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
