# frozen_string_literal: true

require "json"
require_relative "../../version"

module Culet
  module Profile
    # The profile for https://www.speedscope.app, in its own format: a sampled profile for each view, weights in bytes.
    class Speedscope
      SCHEMA = "https://www.speedscope.app/file-format-schema.json"
      private_constant :SCHEMA

      # @param view [Symbol, String] the profile that is shown first
      def initialize(data, view: :live)
        @data = data
        @view = view.to_s
        @frames = {}
      end

      # @return [String] a JSON document
      def to_s
        views = [@view, *(VIEWS - [@view])].reject { |view| @data.sites(view).empty? && view != @view }
        profiles = views.map { |view| profile(view) }
        JSON.generate("$schema" => SCHEMA, "name" => @data.recordings.map(&:name).join(", "), "activeProfileIndex" => 0,
                      "exporter" => "culet #{VERSION}", "shared" => { "frames" => frames }, "profiles" => profiles)
      end

      private

      # Negative weights, of a difference, are not allowed: what shrank is left out.
      def profile(view)
        sites = @data.sites(view).select { |site| site.bytes.positive? }
        weights = sites.map { |site| site.bytes.round }
        { "type" => "sampled", "name" => view, "unit" => "bytes", "startValue" => 0, "endValue" => weights.sum,
          "samples" => sites.map { |site| stack(site) }, "weights" => weights }
      end

      def stack(site)
        names = site.frames.reverse.map { |frame| [frame.method.to_s, frame.file || frame.library, frame.line] }
        names << [site.class_name, nil, nil] if site.class_name
        names.map { |name| @frames[name] ||= @frames.size }
      end

      def frames
        @frames.keys.map { |name, file, line| { "name" => name, "file" => file, "line" => line }.compact }
      end
    end
  end
end
