# frozen_string_literal: true

module Culet
  # The clock of durations, deadlines and ages. The time of day may be set back; it is for what people read.
  #
  # @api private
  module Clock
    # @return [Float] seconds since an arbitrary point, equal in all processes of the machine (CLOCK_MONOTONIC)
    def self.now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)

    # The cost of a reading: on a busy machine the time that passes is longer.
    #
    # @return [Float] seconds of the calling thread
    def self.processor_time = ::Process.clock_gettime(::Process::CLOCK_THREAD_CPUTIME_ID)
  end
end
