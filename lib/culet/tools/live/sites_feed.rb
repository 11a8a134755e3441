# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../profile/live"
require_relative "../../model/profile"

module Culet
  module Live
    # The lines of code that hold the memory of one process whose profile runs.
    class SitesFeed
      # From one reading to the next.
      LEAST_SECONDS = 10.0
      ROWS = 20
      private_constant :LEAST_SECONDS, :ROWS

      # @return [Float] when it was called last, by the monotonic clock
      attr_reader :used

      # @param pid [Integer]
      def initialize(pid)
        @pid = pid
        @lock = Mutex.new
        @due = @used = Clock.now
      end

      # @return [Hash{String => Object}] "at" (seconds since 1970), "total_bytes", and "rows": "name", "bytes",
      #   "low_bytes", "high_bytes", "share"
      # @raise [Culet::Error] when the profile does not run, or cannot be read
      def call
        @lock.synchronize do
          @used = Clock.now
          read if @due <= Clock.now
          @document or raise Error, "the profile of process #{@pid} could not be read; it is read again in a moment"
        end
      end

      private

      # Asking a process for the status first keeps a profile that is off, off.
      def read
        live = Profile::Live.new(@pid, wait_seconds: 1.0)
        unless live.running?
          raise Error, "the profile of process #{@pid} is off; start it with `culet profile #{@pid}`, or with " \
                       "CULET_PROFILE=1"
        end
        recording = Profile::Stream.new(live.name, @pid, live.read, :running).recording
        @document = document(Profile::Data.new([recording]))
      ensure
        @due = Clock.now + LEAST_SECONDS
      end

      def document(data)
        rows = data.by(:live, :line).first(ROWS)
        { "at" => Time.now.to_f, "total_bytes" => data.total(:live).bytes.round, "rows" => rows.map { |row| row(row) } }
      end

      def row(row)
        { "name" => row.name, "bytes" => row.bytes.round, "low_bytes" => row.low_bytes.round,
          "high_bytes" => row.high_bytes.round, "share" => row.share.round(4) }
      end
    end
  end
end
