# frozen_string_literal: true

require "time"

module Culet
  module Profile
    # A profile as one JSON object.
    class Document
      # @param view [Symbol, String] one of VIEWS
      # @param by [Symbol, String, nil] one of KINDS: rows instead of sites
      # @param top [Integer, nil] number of rows or sites; nil: all
      # @param growth [Growth, nil] for the view growth
      # @param kept [KeptSites, nil] what keeps the sites of that view; nil: it is not known
      def initialize(data, view: :live, by: nil, top: nil, growth: nil, kept: nil)
        @data = data
        @kept = kept
        @growth = growth || (Growth.new(data) if view.to_sym == :growth)
        @view = view
        @by = by
        @top = top
      end

      # @return [Hash{String => Object}] the keys of docs/json.md
      def to_h
        head = { "view" => @view.to_s, "sample_bytes" => @data.sample_bytes, **estimate(total, "total_"),
                 "samples" => total.samples, "lost_samples" => @data.lost, **shared, **growth,
                 "processes" => @data.recordings.map { |recording| process(recording) } }
        @by ? head.merge("by" => @by.to_s, "rows" => rows) : head.merge("sites" => sites)
      end

      private

      def total = @total ||= @data.total(@view)

      def shared
        found = @data.shared(@view)
        { "common_bytes" => (found.common.bytes.round if found),
          "inherited_bytes" => (found.inherited.bytes.round if found) }
      end

      def growth
        return {} unless @growth

        { "growth" => { "verdict" => @growth.verdict.to_s, "reason" => @growth.reason&.to_s,
                        "rss_growth_bytes" => @growth.rss_growth_bytes, "explained_bytes" => @growth.explained_bytes,
                        "levels" => @growth.levels, "span_seconds" => @growth.span_seconds,
                        "detectable_bytes" => @growth.detectable_bytes } }
      end

      def first(list) = @top ? list.first(@top) : list

      def process(recording)
        { "pid" => recording.pid, "name" => recording.name, "state" => recording.state&.to_s,
          "started_at" => recording.started_at.utc.iso8601(3), "taken_at" => recording.taken_at.utc.iso8601(3),
          "ended_at" => recording.ended_at&.utc&.iso8601(3),
          **%i[rss_bytes peak_rss_bytes].to_h { |name| [name.to_s, recording.public_send(name).nonzero?] } }
      end

      def estimate(row, prefix = "")
        { "#{prefix}bytes" => row.bytes.round, "#{prefix}low_bytes" => row.low_bytes.round,
          "#{prefix}high_bytes" => row.high_bytes.round }
      end

      def rows
        first(@data.by(@view, @by)).map do |row|
          { "name" => row.name, **estimate(row), "blocks" => row.blocks.round, "samples" => row.samples,
            "share" => row.share.round(6), **application(row), **grows(row) }
        end
      end

      def sites
        first(@data.sites(@view)).map do |site|
          { **estimate(site), "blocks" => site.blocks.round, "samples" => site.samples, "kind" => site.kind.to_s,
            "class" => site.class_name, "labels" => site.labels, "application" => site.application_frame&.place,
            **(@growth ? of_growth(@data.growing.include?(site.place) && !site.own?) { [site] } : {}),
            "frames" => site.frames.map { |frame| frame(frame) } }
        end
      end

      def application(row) = @by.to_sym == :line ? { "application" => row.beside } : {}

      def grows(row)
        return {} unless @growth

        of_growth(row.grows? && !row.own?) { @data.sites_of(row, @view, @by) }
      end

      # @yieldreturn [Array<Site>] of the row
      def of_growth(grows) = { "grows" => grows, "holder" => (@kept&.holding(yield)&.to_h if grows) }

      def frame(frame)
        { "file" => frame.file, "line" => frame.line, "method" => frame.method, "gem" => frame.gem,
          "library" => frame.library }
      end
    end
  end
end
