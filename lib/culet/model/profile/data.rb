# frozen_string_literal: true

require_relative "address_space"
require_relative "estimate"
require_relative "growth"
require_relative "shared_samples"
require_relative "site"
require_relative "stacks"

module Culet
  module Profile
    # The profiles of one or several processes, merged. What several of them have by a fork counts once, whichever of
    # them are there (SharedSamples).
    class Data
      # Views of memory that exec frees.
      IN_USE = %i[live growth].freeze
      # Views with samples that a fork has passed on.
      SHARING = %i[live peak].freeze
      # Kinds of lines, and the line that a row of each has beside.
      BESIDE = { line: :application_frame, place: :ruby_frame }.freeze
      private_constant :IN_USE, :SHARING, :BESIDE

      attr_reader :recordings

      # @param recordings [Array<Recording>] at least one
      def initialize(recordings)
        @recordings = recordings
        @family = recordings
        files = {}
        @stacks = recordings.to_h { |recording| [recording, Stacks.new(recording, files)] }
        @sites = {}
        @shared = {}
      end

      # @return [Integer] mean distance of samples in bytes; the largest of several
      def sample_bytes = recordings.map(&:sample_bytes).max

      # @return [Integer] samples without room
      def lost = recordings.sum(&:lost)

      # @return [Boolean] whether it is the difference of two profiles
      def difference? = false

      # @param view [Symbol, String] one of VIEWS
      # @return [Array<Site>] the largest first; of growth in the order of Site#rank
      def sites(view)
        @sites[view.to_sym] ||= begin
          sites = merged(view.to_sym)
          @leading = places(sites, &:may_grow?) if view.to_sym == :growth
          sites.sort_by { |site| [rank(site), -site.bytes.abs] }
        end
      end

      # @param site [Site] of `sites`
      # @return [Integer] Site#rank
      def rank(site) = site.rank(@leading&.include?(site.place) && !site.own?)

      # @return [Array<String>] places (Site#place) that grow all the time
      def growing = @growing ||= places(sites(:growth), &:grows?)

      # @param own [Boolean] whether those of culet itself, too
      # @return [Array<Births>] of all sites, also those without survivors
      def births(own: true)
        recordings.flat_map do |recording|
          next [] if replaced?(recording)

          found = recording.sites.select { |raw| raw.births && !copy?(recording, raw) }
          found = found.reject { |raw| Stacks.own?(frames(recording, raw)) } unless own
          found.map { |raw| scaled(recording, raw) }
        end
      end

      # @param view [Symbol, String]
      # @return [Row] of all sites
      def total(view) = Row.new("all", sites(view).map(&:estimate).reduce(Estimate.new, :+), 1.0)

      # @param view [Symbol, String]
      # @param kind [Symbol, String] one of KINDS
      # @return [Array<Row>] the largest first, and last what culet itself holds. A site with several labels counts for
      #   each
      def by(view, kind)
        groups = Hash.new { |hash, name| hash[name] = [] }
        sites(view).each { |site| site.names(kind.to_sym).each { |name| groups[name] << site } }
        all = total(view).bytes
        own_last(groups.map { |name, sites| row(name, sites, all, BESIDE[kind.to_sym]) })
      end

      # @param row [Row] of `by`
      # @param view [Symbol, String] as there, as `kind`
      # @return [Array<Site>]
      def sites_of(row, view, kind) = sites(view).select { |site| site.names(kind.to_sym).include?(row.name) }

      # @param view [Symbol, String]
      # @return [SharedSamples, nil] nil: the view has none
      def shared(view)
        view = view.to_sym
        return unless SHARING.include?(view)

        @shared[view] ||= SharedSamples.new(@family.reject { |one| IN_USE.include?(view) && replaced?(one) })
      end

      # @return [Array<Data>] of each process alone; what it has inherited from another one counts there, as before
      def processes = recordings.map { |recording| dup.tap { |copy| copy.limit(recording) } }

      # The identity of a site. culet's own allocations have arbitrary labels, which are dropped.
      #
      # @param recording [Recording] one of these
      # @param raw [Recording::RawSite] of its sites
      # @return [Array] Site#key of the site that has it
      def key(recording, raw)
        frames = frames(recording, raw)
        labels = Stacks.own?(frames) ? {} : recording.labels.fetch(raw.label, {})
        [frames, raw.kind, recording.types[raw.type], labels]
      end

      # @param space [AddressSpace]
      # @return [Data] the same, with the address of each native frame: sites are apart where a function allocates by
      #   two calls
      def with_addresses(space = AddressSpace.new) = dup.tap { |copy| copy.locate(space) }

      protected

      def limit(recording)
        @recordings = [recording]
        @sites = {}
        @growing = nil
      end

      def locate(space)
        @stacks = @stacks.transform_values { |stacks| stacks.with_addresses(space) }
        @sites = {}
        @growing = nil
      end

      private

      def merged(view)
        sums = {}
        births = {}
        recordings.each do |recording|
          duplicates = shared(view)&.duplicates(recording) || {}
          recording.sites.each_with_index do |raw, at|
            estimate = estimate(recording, raw, view, duplicates[at + 1]) or next
            next if copy?(recording, raw)

            key = key(recording, raw)
            add(sums, key, estimate)
            add(births, key, scaled(recording, raw)) if view == :growth && raw.births
          end
        end
        sums.map { |key, sum| Site.new(key, sum, births[key]) }
      end

      def add(sums, key, more)
        sum = sums[key]
        sums[key] = sum ? sum + more : more
      end

      def frames(recording, raw) = @stacks.fetch(recording).frames(raw.stack, raw.kind)

      # Whether it is of buffers that count with their objects.
      def copy?(recording, raw) = recording.buffers? && raw.kind == :malloc && Stacks.deferred?(frames(recording, raw))

      # @return [Births]
      def scaled(recording, raw) = raw.kind == :object ? raw.births * recording.object_scale : raw.births

      # @yieldparam births [Births] of a place
      # @return [Array<String>] places for which the block is true
      def places(sites)
        groups = sites.select { |site| site.births && !site.own? && !site.collector? }.group_by(&:place)
        groups.select { |_, group| yield group.map(&:births).reduce(:+) }.keys
      end

      def row(name, sites, all, frame)
        sum = sites.map(&:estimate).reduce(:+)
        births = sites.reject(&:collector?).filter_map(&:births).reduce(:+)
        rank = sites.map { |site| site.rank(births&.may_grow?) }.min
        Row.new(name, sum, all.zero? ? 0.0 : sum.bytes / all, births, frame && beside(sites, frame), rank)
      end

      # @return [String, nil] the line with most bytes of the sites
      def beside(sites, frame)
        groups = sites.reject(&:own?).group_by { |site| site.public_send(frame)&.place }
        groups.max_by { |place, group| place ? group.sum { |site| site.bytes.abs } : -1 }&.first
      end

      def estimate(recording, raw, view, duplicates)
        found = raw.sums[view] or return
        return if IN_USE.include?(view) && replaced?(recording)

        found -= duplicates if duplicates
        found *= recording.object_scale if raw.kind == :object
        found if found.samples.positive?
      end

      # Whether the program that exec put in its place is there too.
      def replaced?(recording)
        recording.state == :replaced &&
          @family.any? { |other| other.pid == recording.pid && other.started_at > recording.started_at }
      end

      # Rows of culet's own memory come last.
      def own_last(rows) = rows.sort_by { |row| [row.own? ? 1 : 0, row.rank || 0, -row.bytes.abs] }
    end
  end
end
