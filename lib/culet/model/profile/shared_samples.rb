# frozen_string_literal: true

require_relative "estimate"

module Culet
  module Profile
    # Live samples that several processes have, because one was forked from another or both from a third one. Each
    # counts once: in the process that allocated it if that is there and still has it, else in one of the others.
    class SharedSamples
      # @return [Estimate] of what several of these processes have
      attr_reader :common
      # @return [Estimate] of what was allocated before a fork, and is in no process of these that allocated it
      attr_reader :inherited

      def initialize(recordings)
        @common = Estimate.new
        @inherited = Estimate.new
        @duplicates = {}.compare_by_identity
        # started_at and id of a sample => whether it was found again.
        @seen = {}
        recordings.sort_by(&:generation).each { |recording| @duplicates[recording] = count(recording) }
      end

      # @return [Hash{Integer => Estimate}] number of a site => what counts elsewhere; 0 where there is none
      def duplicates(recording) = @duplicates.fetch(recording, {})

      private

      def count(recording)
        start = (@seen[recording.started_at] ||= {})
        recording.shared.each_slice(Recording::SHARED).with_object({}) do |(site, id, inherited, weight, size), sums|
          estimate = Estimate.of(size, weight)
          if start.key?(id)
            sums[site] = sums.key?(site) ? sums[site] + estimate : estimate
            @common += estimate unless start[id]
            start[id] = true
          else
            @inherited += estimate if inherited == 1
            start[id] = false
          end
        end
      end
    end
  end
end
