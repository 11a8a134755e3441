# frozen_string_literal: true

require_relative "../profile"
require_relative "cause"
require_relative "kernel_log"

module Culet
  module Autopsy
    # All that a black box says: cause, levels, sites, requests.
    class Findings
      # @return [Box]
      attr_reader :box

      # @return [Cause]
      attr_reader :cause

      # @return [KernelLog]
      attr_reader :log

      # @param box [Box]
      # @param alive [Boolean] whether its process is alive
      # @param log [KernelLog]
      def initialize(box, alive:, log: KernelLog.read)
        @box = box
        @log = log
        @cause = Cause.new(box, alive: alive, log: log)
      end

      # @return [Box::Ledger, nil] the last one
      def ledger = box.ledgers.last

      # @return [Integer, nil] the limit of its control group; nil: none, or not known
      def limit_bytes
        limit = ledger&.group_limit
        limit if limit&.between?(1, (1 << 60) - 1)
      end

      # What the kernel counts against the limit, less what it can take back.
      #
      # @return [Integer, nil]
      def used_bytes = ledger&.group_used

      # @return [Hash{String => Integer}] parts of the resident size, the known ones; they add up to it
      def levels
        rest = ledger&.resident or return {}
        parts = { "malloc in use" => ledger.malloc_used, "malloc free" => ledger.malloc_free,
                  "malloc metadata" => ledger.malloc_metadata, "ruby objects" => live_slots,
                  "ruby free slots" => free_slots, "files and shared memory" => ledger.shared }
        found = parts.compact.each_with_object({}) do |(name, bytes), sum|
          sum[name] = [bytes, rest].min
          rest -= sum[name]
        end
        found.merge("other" => rest)
      end

      # @return [Profile::Data, nil] the largest sites, if the profile was on
      def profile
        return @profile if defined?(@profile)

        @profile = box.profiles.lazy.filter_map { |stream| parse(stream) }.first&.then { |one| Profile::Data.new([one]) }
      end

      # @return [Float, nil] what the profile estimates for all sites, not only the largest
      def profiled_bytes
        recording = profile&.recordings&.first or return
        stream = box.profiles.find { |text| parse(text) }
        malloc, objects = stream[/^B \d{1,19} \d{1,19}$/]&.split&.last(2)
        malloc.to_f + (objects.to_f * recording.object_scale) if malloc
      end

      # @return [Array<Profile::Row>] the largest sites by line
      def lines = profile ? profile.by(:live, :line) : []

      # @return [Array<Box::Event>] requests and jobs that were running, the oldest first
      def running = box.events.reject(&:ended_at)

      # @return [Array<Box::Event>] requests and jobs that had ended, the latest first
      def finished = box.events.select(&:ended_at).sort_by(&:ended_at).reverse

      private

      def live_slots
        return unless ledger.ruby_pages && ledger.slots_live && ledger.slots_all&.positive?

        ledger.ruby_pages * ledger.slots_live.clamp(0, ledger.slots_all) / ledger.slots_all
      end

      def free_slots = (ledger.ruby_pages - live_slots if live_slots)

      # A damaged stream leaves the older one.
      def parse(stream)
        (@parsed ||= {})[stream] ||= Profile::Recording.parse(stream, name: "process #{box.pid}")
      rescue Error
        nil
      end
    end
  end
end
