# frozen_string_literal: true

require_relative "../text/numbers"
require_relative "profile"
require_relative "retention/analysis"

module Culet
  # Finds the holders of a profile's sites, and the sites of a holder's memory, by the samples of the profile among the
  # objects of the same process.
  class KeptSites
    # The largest holder of a site. keeper: Retention::Holder or HolderSet; nil: a holder that the analysis does not
    # list. share: part of the site's bytes with known objects.
    Holding = Struct.new(:keeper, :path, :share) do
      # @return [String]
      def name = (keeper ? keeper.name : path.steps.first&.edge).to_s

      # @return [String, nil] as of Holder, or "set"; nil: not known
      def kind = keeper.is_a?(Retention::HolderSet) ? "set" : keeper&.kind

      # @return [Hash{String => Object}] for JSON
      def to_h = { "name" => name, "kind" => kind, "path" => path.parts }

      # @return [String] "kept by Shop::CACHE -> Hash -> Page @body -> String"
      def to_s
        part = " to #{Text::Numbers.percent(share, 1, digits: 0)}" if share < MOST_OF_IT
        together = "#{name} together: " if keeper.is_a?(Retention::HolderSet)
        "kept#{part} by #{together}#{path.steps.empty? ? name : path}"
      end
    end
    # The line of the program that allocated most of what a holder keeps. labels: under which it did. share: of the
    # bytes whose sites are known.
    Origin = Struct.new(:place, :labels, :share) do
      # @return [String] "allocated in page.rb:11 by GET /search"
      def to_s = "allocated in #{place}#{" by #{Text::Lines.list(labels.values)}" if labels.any?}"

      # @return [Hash{String => Object}] for JSON
      def to_h = { "place" => place, "labels" => labels, "share" => share.round(3) }
    end
    # A share that is not worth a word.
    MOST_OF_IT = 0.95
    private_constant :MOST_OF_IT

    # @param analyses [Array<Retention::Analysis>] of its processes, with samples
    def initialize(data, analyses)
      @sampled = data.recordings.flat_map do |recording|
        analysis = analyses.find { |one| one.samples_of?(recording) } or next []

        raws = recording.sites.to_h { |raw| [[raw.kind, raw.stack, raw.label, raw.type], raw] }
        analysis.sampled_sites.filter_map { |one| (raw = raws[one.key]) && [data.key(recording, raw), one] }
      end
      @by_key = @sampled.group_by(&:first)
    end

    # @param sites [Array<Profile::Site>] e.g. of one line
    # @return [Holding, nil] nil: no object of theirs was found
    def holding(sites)
      found = sites.flat_map { |site| @by_key.fetch(site.key, []) }
      found = sites.map(&:place).uniq.flat_map { |place| by_place.fetch(place, []) } if found.empty?
      kept = found.flat_map { |_, one| one.kept }
      groups = kept.group_by { |one| one.keeper&.key || one.path.steps.first&.edge }.each_value
      most = groups.max_by { |group| group.sum(&:bytes) } or return
      share = most.sum(&:bytes).fdiv(found.sum { |_, one| one.bytes }.clamp(1..))
      Holding.new(most.first.keeper, most.max_by(&:bytes).path, share)
    end

    # @yieldparam keeper [Retention::Holder, Retention::HolderSet]
    # @yieldreturn [Boolean] whether to take what it keeps
    # @return [Origin, nil] nil: not known
    def origin
      sites = @sampled.filter_map do |key, one|
        bytes = one.kept.sum { |kept| kept.keeper && yield(kept.keeper) ? kept.bytes : 0 }
        [site(key), bytes] if bytes.positive? && !site(key).own?
      end
      place, of_place = most(sites, &:place)
      Origin.new(place, most(of_place, &:labels).first, sum(of_place).fdiv(sum(sites))) if place
    end

    private

    def by_place = @by_place ||= @sampled.group_by { |key, _| site(key).place }

    # @param sites [Array<Array(Profile::Site, Integer)>]
    # @return [Array, nil] what those with most bytes have in common, and these
    def most(sites) = sites.group_by { |site, _| yield(site) }.max_by { |_, group| sum(group) }

    def sum(sites) = sites.sum(&:last)

    def site(key) = Profile::Site.new(key, Profile::Estimate.new)
  end
end
