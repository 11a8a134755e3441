# frozen_string_literal: true

require_relative "../../system/clock"

module Culet
  module Metrics
    # The Metrics.sites largest sites of the memory profile, while the profile is on.
    class Sites
      # Pause after a report, as a multiple of its duration.
      REST = 1_000
      # Longest name of a site, its innermost Ruby frame, in characters.
      LENGTH = 120
      private_constant :REST, :LENGTH

      # @return [Array<Array(String, Hash{String => String}, Numeric)>] name, labels and value
      def samples
        return [] unless Metrics.sites.positive? && Culet::Profile.respond_to?(:report) && Culet::Profile.running?

        report if Clock.now >= @next_report.to_f
        @samples
      end

      private

      def report
        start = Clock.now
        sites = Culet::Profile.report(view: :live)["sites"].first(Metrics.sites)
        @samples = sites.each_with_index.flat_map { |site, index| pair(site, (index + 1).to_s) }
        done = Clock.now
        @next_report = done + ((done - start) * REST)
      end

      def pair(site, rank)
        [["culet_profile_site_bytes", { "rank" => rank }, site["bytes"]],
         ["culet_profile_site_info", { "rank" => rank, "site" => name(site), "class" => site["class"].to_s }, 1]]
      end

      def name(site)
        frame = site["frames"].find { |one| one["line"] } || site["frames"].first || {}
        place = [frame["file"] || frame["library"], frame["line"]].compact.join(":")
        [place, frame["method"]].compact.join(" ").scrub("?")[0, LENGTH]
      end
    end
  end
end
