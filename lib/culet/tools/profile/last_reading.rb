# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../model/profile/recording"

module Culet
  module Profile
    # The last profile that a running process gave, for the case that it ends without writing one. It is read so rarely
    # that this takes at most a fiftieth of the time.
    class LastReading
      FIRST_SECONDS = 1.0
      LEAST_SECONDS = 2.0
      SHARE = 50
      private_constant :FIRST_SECONDS, :LEAST_SECONDS, :SHARE

      # @return [Stream, nil] nil: the process has not answered yet
      attr_reader :stream

      def initialize(live)
        @live = live
        @due = Clock.now + FIRST_SECONDS
      end

      # @return [Boolean] whether the process is to be asked again
      def due? = Clock.now >= @due

      # Asks the process.
      #
      # @return [Stream]
      # @raise [Culet::Error] when it does not answer
      def take
        begun = Clock.now
        @stream = Stream.new(@live.name, @live.pid, @live.read, :running)
      ensure
        @due = Clock.now + [LEAST_SECONDS, SHARE * (Clock.now - begun)].max
      end

      # @param time [Time] when the end of the process was noticed
      # @return [Stream, nil] the last one; nil: there is none
      def at_end(time) = @stream && Stream.new(*@stream.to_a.first(3), :ended, time)
    end
  end
end
