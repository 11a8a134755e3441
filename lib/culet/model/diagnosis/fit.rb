# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "observation"

module Culet
  class Diagnosis
    # How many workers a size of memory has room for.
    #
    # Shared memory and the parent's private memory count once; each worker adds its private memory, at its peak within
    # the watch, which includes requests. At best all workers are idle at once; at worst all are at the highest peak of
    # any worker.
    class Fit
      # Minimum size of a peak, in bytes, for an estimate of the memory of a thread.
      LEAST_SWING = 1_000_000
      private_constant :LEAST_SWING

      # @return [Integer] available bytes
      attr_reader :limit_bytes

      # @param observation [Observation]
      # @param limit_bytes [Integer]
      def initialize(observation, limit_bytes:)
        @observation = observation
        @limit_bytes = limit_bytes
      end

      # @return [Integer] bytes of one worker, at the mean of their peaks
      def worker_bytes = mean(peaks)

      # @return [Integer] bytes that count once: shared, and private to the parent
      def shared_bytes = @observation.total_bytes - workers.sum(&:private_bytes)

      # @return [Integer] expected number of workers
      def count = room / [worker_bytes, 1].max

      # @return [Integer] number of workers if all are at the highest peak at once
      def low = room / [peaks.max, 1].max

      # @return [Integer] number of workers if all are as small as the smallest
      def high = room / [series.map(&:min).min, 1].max

      # @param count [Integer] of workers
      # @return [Integer] bytes of these workers, including shared memory
      def total_bytes(count) = shared_bytes + (count * worker_bytes)

      # The memory of a thread that serves a request: a minimum, which assumes that all threads were busy at the peak.
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
