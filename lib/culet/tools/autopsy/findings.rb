# frozen_string_literal: true

require_relative "../../model/profile"
require_relative "cause"
require_relative "kernel_log"

module Culet
  module Autopsy
    # All that a black box says: cause, levels, sites, requests.
    class Findings
      attr_reader :box, :cause

      # @return [KernelLog]
      attr_reader :log

      # @param alive [Boolean] whether its process is alive
      # @param log [KernelLog]
      def initialize(box, alive:, log: KernelLog.read)
        @box = box
        @log = log
        @cause = Cause.new(box, alive: alive, log: log)
      end

      # @return [Box::Reading, nil] the last one
      def reading = box.readings.last

      # @return [Integer, nil] the limit of its control group; nil: none, or not known
      def limit_bytes = reading&.limit_bytes

      # @return [Integer, nil] bytes in use of the control group
      # @see Box::Reading#group_used_bytes
      def used_bytes = reading&.group_used_bytes

      # @return [Profile::Data, nil] the largest sites, if the profile was on
      def profile
        return @profile if defined?(@profile)

        @profile = box.profiles.lazy.filter_map { |stream| parse(stream) }.first&.then { |one| Profile::Data.new([one]) }
      end

      # @return [Float, nil] what the profile estimates for all sites, not only the largest
      def profiled_bytes = (profile.recordings.first.total_bytes if profile)

      # @return [Array<Profile::Row>] the largest sites by line
      def lines = profile ? profile.by(:live, :line) : []

      # @return [Array<Box::Event>] requests and jobs that were running, the oldest first
      def running = box.events.reject(&:ended_at)

      # @return [Array<Box::Event>] requests and jobs that had ended, the latest first
      def finished = box.events.select(&:ended_at).sort_by(&:ended_at).reverse

      private

      # A damaged stream leaves the older one.
      def parse(stream)
        Profile::Recording.new(stream, name: "process #{box.pid}")
      rescue Error
        nil
      end
    end
  end
end
