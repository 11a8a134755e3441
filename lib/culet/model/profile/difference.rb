# frozen_string_literal: true

require_relative "data"

module Culet
  module Profile
    # A later profile less an earlier one. Sites that shrank have negative bytes.
    class Difference < Data
      # The estimate of a difference: the variances add up.
      class Change < Estimate
        # @param after [Estimate]
        # @param before [Estimate]
        def initialize(after, before)
          super(after.samples + before.samples, after.blocks - before.blocks, after.bytes - before.bytes,
                after.variance + before.variance)
        end

        # @param other [Estimate]
        def +(other)
          sum = super
          Change.new(sum, Estimate.new)
        end

        private

        def limits = [bytes - half, bytes + half]
      end

      # @return [Data]
      attr_reader :base

      # @param data [Data] the later one
      # @param base [Data] the earlier one
      def initialize(data, base)
        super(data.recordings)
        @data = data
        @base = base
      end

      # @return [Boolean] true
      def difference? = true

      # @return [Boolean] whether a profile was started again between the two: the later one lacks what was allocated
      #   before, also if it is still in use
      def restarted?
        @data.recordings.any? do |later|
          @base.recordings.any? { |earlier| earlier.pid == later.pid && earlier.taken_at <= later.started_at }
        end
      end

      # @param view [Symbol, String]
      # @return [Boolean] whether the profiles have no source file in common, so that none of their sites match
      def unrelated?(view)
        files = [@data, @base].map do |data|
          data.sites(view).flat_map(&:frames).filter_map { |frame| frame.file if frame.gem.nil? }.uniq
        end
        files.none?(&:empty?) && !files[0].intersect?(files[1])
      end

      # @return [Array<Data>] itself: a process of one profile may have none to match in the other
      def processes = [self]

      # @param view [Symbol, String]
      # @return [Array<Site>] the largest change first
      def sites(view) = @sites[view.to_sym] ||= changes(view).sort_by { |site| -site.bytes.abs }

      # @param view [Symbol, String]
      # @return [Row]
      def total(view) = Row.new("all", Change.new(@data.total(view).estimate, @base.total(view).estimate), 1.0)

      # @param view [Symbol, String]
      # @param kind [Symbol, String]
      # @return [Array<Row>] the largest change first
      def by(view, kind)
        before, after = [@base, @data].map { |data| data.by(view, kind).to_h { |row| [row.name, row] } }
        all = @data.total(view).bytes
        rows = (after.keys | before.keys).map do |name|
          one, other = [after, before].map { |side| side[name] || Row.new(name, Estimate.new) }
          change = Change.new(one.estimate, other.estimate)
          Row.new(name, change, all.zero? ? 0.0 : change.bytes / all, nil, one.beside || other.beside)
        end
        own_last(rows)
      end

      protected

      def locate(space)
        super
        @data = @data.with_addresses(space)
        @base = @base.with_addresses(space)
      end

      private

      def changes(view)
        before, after = [@base, @data].map { |data| data.sites(view).to_h { |site| [site.key, site.estimate] } }
        (after.keys | before.keys).map do |key|
          Site.new(key, Change.new(after.fetch(key) { Estimate.new }, before.fetch(key) { Estimate.new }))
        end
      end
    end
  end
end
