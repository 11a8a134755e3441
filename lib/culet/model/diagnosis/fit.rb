# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "observation"

module Culet
  class Diagnosis
    # How many workers a size of memory has room for.
    #
    # All processes together take what they share, and what is the parent's alone, once; and for each worker what is its
    # own. A worker counts with its peak within the watch, so requests that were served then are included. At best all
    # workers are at rest at once; at worst all are at the highest peak of any.
    class Fit
      # A peak that is no larger, in bytes, does not tell what a thread takes.
      LEAST_SWING = 1_000_000
      private_constant :LEAST_SWING

      # @return [Integer] bytes that there are
      attr_reader :limit_bytes

      # @param observation [Observation]
      # @param limit_bytes [Integer]
      def initialize(observation, limit_bytes:)
        @observation = observation
        @limit_bytes = limit_bytes
      end

      # @return [Integer] bytes of one worker, at the mean of their peaks
      def worker_bytes = mean(peaks)

      # @return [Integer] bytes of all that is not a worker's own
      def shared_bytes = @observation.total_bytes - workers.sum(&:private_bytes)

      # @return [Integer] expected number of workers
      def count = room / [worker_bytes, 1].max

      # @return [Integer] if all are at the highest peak at once
      def low = room / [peaks.max, 1].max

      # @return [Integer] if all are as small as the smallest was
      def high = room / [series.map(&:min).min, 1].max

      # @param count [Integer] of workers
      # @return [Integer] bytes that they take together with what they share
      def total_bytes(count) = shared_bytes + (count * worker_bytes)

      # A thread that serves a request takes this much at least, if all of them did at the peak.
      #
      # @return [Integer, nil] bytes; nil where no worker had a peak, or the threads are not known
      def thread_bytes
        swing = mean(series.map { |bytes| bytes.max - bytes.min })
        threads = workers.flat_map { |worker| seen(worker, "threads") }.max
        swing / threads if threads && swing >= LEAST_SWING
      end

      # @return [String]
      def sentence
        sizes = "#{human(shared_bytes)} once, and #{human(worker_bytes)} for each worker at its peak"
        return "#{human(limit_bytes)} has no room for one worker: it takes #{sizes}" if count.zero?

        room = "room for #{Text::Numbers.count(count, "worker")} (#{low} to #{high})"
        "#{human(limit_bytes)} has #{room}: #{sizes}#{thread}"
      end

      # @return [Hash{String => Object}] for JSON
      def document
        { "limit_bytes" => limit_bytes, "workers" => count, "low" => low, "high" => high,
          "worker_bytes" => worker_bytes, "shared_bytes" => shared_bytes, "thread_bytes" => thread_bytes }
      end

      private

      def room = [limit_bytes - shared_bytes, 0].max

      # The largest family of processes that were forked alike, or the one process.
      def workers
        @workers ||= begin
          families = @observation.workers.group_by(&:parent_pid).values
          families.max_by(&:size) || [@observation.members.max_by(&:private_bytes)]
        end
      end

      # @return [Array<Array<Integer>>] private bytes of each worker over time
      def series = @series ||= workers.map { |worker| [*seen(worker, "private_bytes"), worker.private_bytes] }

      # @return [Array<Integer>] a figure of the worker over time
      def seen(worker, figure) = @observation.points_of(worker.pid) { |one| one[figure] }.map(&:last)

      def peaks = series.map(&:max)

      def mean(values) = values.sum / values.size

      def thread = ("; a thread takes #{human(thread_bytes)} or more of that at its peak" if thread_bytes)

      def human(bytes) = Text::Size.human(bytes)
    end
  end
end
