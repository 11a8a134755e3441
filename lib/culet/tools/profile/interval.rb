# frozen_string_literal: true

require_relative "data"

module Culet
  module Profile
    # The profile of an interval: what was allocated in it, and all else as it is at its end.
    class Interval < Data
      # @param before [Array<Recording>] from the begin of the interval
      # @param recordings [Array<Recording>] from its end
      def initialize(before, recordings)
        super(recordings)
        runs = recordings.map { |one| run(one) }
        @before = before.select { |one| runs.include?(run(one)) }
      end

      # @param view [Symbol, String] one of VIEWS
      # @return [Array<Site>] the largest first
      def sites(view)
        return super unless view.to_sym == :allocated

        @sites[:allocated] ||= added.sites(:allocated).select { |site| site.bytes.positive? }
      end

      private

      def added = Data.new(recordings) - Data.new(@before)

      # A profile that was started again counts from zero.
      def run(recording) = [recording.pid, recording.started_at]
    end
  end
end
