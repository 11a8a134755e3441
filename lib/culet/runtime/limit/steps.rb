# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Limit
    # The steps of the escalation.
    #
    # @api private
    module Steps
      # A step that may run at any time. Subclasses define `call`, which takes the step, and returns a detail for the
      # log, nil, or :nothing if the step did nothing.
      class Step
        # @return [String] for the log
        attr_reader :name

        # @param name [String]
        def initialize(name)
          @name = name
          @backoff = Backoff.new
        end

        # @param used_share [Float] used bytes divided by the limit
        # @return [Boolean] whether the step may run; false in the pause after a call that freed little
        def due?(used_share) = @backoff.due?(Clock.now, used_share)

        # Called after each `call`, if the step frees memory by itself.
        #
        # @param share [Float] freed bytes divided by the limit
        # @param used_share [Float] used bytes divided by the limit, after the call
        # @param took [Float] duration of the call in seconds
        def freed(share, used_share, took)
          @backoff.note(Clock.now, took * pause_factor(used_share), share, used_share)
        end

        # Called while the usage is below the alarm level.
        #
        # @return [void]
        def relieved = nil

        # @return [Boolean] whether the call itself frees memory; false for a restart, for example
        def frees? = true

        # @return [Boolean] whether the step has changes to undo, so that `relieved` is also called between two passes
        def pending? = false

        private

        # The pause after a call, as a multiple of its duration.
        def pause_factor(_used_share) = 10
      end

      # Returns free memory of malloc to the kernel.
      class Trim < Step
        def initialize = super("trim")

        # @return [nil]
        def call = Steps.quietly_trim
      end

      # Calls the program's own blocks, then trims.
      class Callbacks < Step
        # @param blocks [Array<Proc>]
        # @param log [#call] writes a line for each block that fails
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
        # Maximum wait for a boundary in seconds.
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

        # Ignores the wait for a boundary, which uses no CPU time.
        def freed(share, used_share, _took) = super(share, used_share, @took)

        private

        def pause_factor(used_share) = used_share >= URGENT ? URGENT_SHARE : SHARE

        # @return [Float] the time of the start
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
        nil # this malloc has no function to trim
      end
    end
  end
end
