# frozen_string_literal: true

require_relative "address_space"
require_relative "estimate"
require_relative "site"
require_relative "stacks"

module Culet
  module Profile
    # The profiles of one or several processes, merged. What a forked process has inherited counts once, in the process
    # that allocated it, if that is among them.
    class Data
      # Views of memory that exec frees.
      IN_USE = %i[live growth].freeze
      private_constant :IN_USE

      # @return [Array<Recording>]
      attr_reader :recordings

      # @param recordings [Array<Recording>] at least one
      def initialize(recordings)
        @recordings = recordings
        @family = recordings
        files = {}
        @stacks = recordings.to_h { |recording| [recording, Stacks.new(recording, files)] }
        @sites = {}
      end

      # @return [Integer] mean distance of samples in bytes; the largest of several
      def sample_bytes = recordings.map(&:sample_bytes).max

      # @return [Integer] samples without room
      def lost = recordings.sum(&:lost)

      # @return [Boolean] whether it is the difference of two profiles
      def difference? = false

      # @param view [Symbol, String] one of VIEWS
      # @return [Array<Site>] the largest first
      def sites(view)
        @sites[view.to_sym] ||= merged(view.to_sym).sort_by { |site| -site.bytes }
      end

      # @param view [Symbol, String]
      # @return [Row] of all sites
      def total(view)
        Row.new("all", sites(view).map(&:estimate).reduce(Estimate.new, :+), 1.0)
      end

      # @param view [Symbol, String]
      # @param kind [Symbol, String] one of KINDS
      # @return [Array<Row>] the largest first. A site with several labels counts for each
      def by(view, kind)
        sums = Hash.new { |hash, name| hash[name] = Estimate.new }
        sites(view).each { |site| site.names(kind.to_sym).each { |name| sums[name] += site.estimate } }
        all = total(view).bytes
        sums.map { |name, sum| Row.new(name, sum, all.zero? ? 0.0 : sum.bytes / all) }.sort_by { |row| -row.bytes }
      end

      # @param other [Data] an earlier profile
      # @return [Difference]
      def -(other)
        require_relative "difference"
        Difference.new(self, other)
      end

      # @return [Array<Data>] of each process alone; what it has inherited from another one counts there, as before
      def processes
        recordings.map { |recording| dup.tap { |copy| copy.limit(recording) } }
      end

      # @param space [AddressSpace]
      # @return [Data] the same, with the address of each native frame: sites are apart where a function allocates by
      #   two calls
      def with_addresses(space = AddressSpace.new)
        dup.tap { |copy| copy.locate(space) }
      end

      protected

      def limit(recording)
        @recordings = [recording]
        @sites = {}
      end

      def locate(space)
        @stacks = @stacks.transform_values { |stacks| stacks.with_addresses(space) }
        @sites = {}
      end

      private

      def merged(view)
        sums = {}
        recordings.each do |recording|
          recording.sites.each do |raw|
            estimate = estimate(recording, raw, view) or next
            key = key(recording, raw)
            sum = sums[key]
            sums[key] = sum ? sum + estimate : estimate
          end
        end
        sums.map { |key, sum| Site.new(key, sum) }
      end

      def estimate(recording, raw, view)
        found = raw.sums[view] or return
        return if IN_USE.include?(view) && replaced?(recording)

        found -= raw.sums[:inherited] if view == :live && raw.sums[:inherited] && inherits?(recording)
        found *= recording.object_scale if raw.kind == :object
        found if found.samples.positive?
      end

      # Whether the program that exec put in its place is there too.
      def replaced?(recording)
        recording.state == :replaced &&
          recordings.any? { |other| other.pid == recording.pid && other.started_at > recording.started_at }
      end

      # Whether a process that this one may have inherited from is there too.
      def inherits?(recording)
        recording.generation.positive? && @family.any? { |other| other.generation < recording.generation }
      end

      def key(recording, raw)
        [@stacks.fetch(recording).frames(raw.stack), raw.kind, recording.types[raw.type],
         recording.labels.fetch(raw.label, {})]
      end
    end
  end
end
