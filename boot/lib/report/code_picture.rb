# frozen_string_literal: true

require "erb"
require_relative "../../../lib/culet/text/numbers"
require_relative "../../../lib/culet/text/size"
require_relative "unused"

module Culet
  module Boot
    # Compiled code by gem as an SVG picture: bars of code that ran, code that did not run, and code of unknown use.
    class CodePicture
      # Class, title, bytes of a gem.
      PARTS = [["ran", "ran",
                ->(one) { one["iseq_bytes"] - one["unused_bytes"] - one["untold_bytes"] - one["unseen_bytes"] }],
               ["unknown", "unknown", ->(one) { one["untold_bytes"] + one["unseen_bytes"] }],
               ["unused", "did not run", ->(one) { one["unused_bytes"] }]].freeze
      WIDTH = 900
      ROW = 24
      NAMES = 210
      TOP = 74
      RIGHT = 170
      private_constant :PARTS, :WIDTH, :ROW, :NAMES, :TOP, :RIGHT

      # @param document [Hash] of Unused
      # @param lines [Integer] number of gems; the others share one bar
      def initialize(document, lines: 15)
        @document = document
        @lines = lines
      end

      # @return [String]
      def to_s
        <<~SVG
          <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{height}" width="#{WIDTH}" height="#{height}" role="img" aria-label="#{h(title)}">
          <style>
          text { font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1d1f23; }
          .title { font-size: 16px; font-weight: 600; } .small { fill: #62666e; font-size: 12px; }
          .ran { fill: #0072b2; } .unknown { fill: #c9ccd1; } .unused { fill: #e69f00; } .paper { fill: #fdfdfc; }
          @media (prefers-color-scheme: dark) { text { fill: #e9e9e7; } .small { fill: #a3a7af; } .ran { fill: #2f93d1; } .unknown { fill: #565b64; } .paper { fill: #15171b; } }
          </style>
          <rect class="paper" width="#{WIDTH}" height="#{height}"/>
          <text class="title" x="16" y="28">#{h(title)}</text>
          #{key}
          #{gems.each_with_index.map { |one, index| row(one, TOP + (index * ROW)) }.join("\n")}
          </svg>
        SVG
      end

      private

      def h(text) = ERB::Util.html_escape(text)

      def title
        unused, all = @document.values_at("unused_bytes", "iseq_bytes")
                               .map { |bytes| Text::Size.cell(bytes, digits: 2) }
        "#{unused} of #{all} MB of compiled code " \
          "#{Unused.verdict(@document)} (#{Unused.percent(@document) || 0} %)"
      end

      # The gems with most code.
      def gems
        @gems ||= begin
          sorted = @document["gems"].sort_by { |one| -one["iseq_bytes"] }
          rest = sorted.drop(@lines)
          sums = %w[iseq_bytes unused_bytes untold_bytes unseen_bytes].to_h do |key|
            [key, rest.sum { |one| one[key] }]
          end
          others = { "gem" => "#{Text::Numbers.count(rest.size, "gem")} more", **sums }
          rest.empty? ? sorted : [*sorted.first(@lines), others]
        end
      end

      def height = TOP + (gems.size * ROW) + 14

      def scale = @scale ||= (WIDTH - NAMES - RIGHT).fdiv([gems.map { |one| one["iseq_bytes"] }.max.to_i, 1].max)

      def key
        PARTS.each_with_index.map do |(name, words), index|
          left = 16 + (index * 110)
          %(<rect class="#{name}" x="#{left}" y="42" width="14" height="12"/>) +
            %(<text class="small" x="#{left + 20}" y="53">#{words}</text>)
        end.join
      end

      def row(one, top)
        left = NAMES.to_f
        bars = PARTS.map do |name, words, bytes|
          wide = [bytes.call(one), 0].max * scale
          bar = format('<rect class="%s" x="%.1f" y="%d" width="%.1f" height="16"><title>%s: %s</title></rect>',
                       name, left, top, wide, words, h(Text::Size.human([bytes.call(one), 0].max)))
          left += wide
          bar
        end
        share = Unused.percent(one) || 0
        %(<text x="#{NAMES - 10}" y="#{top + 13}" text-anchor="end">#{h(one["gem"])}</text>#{bars.join}) +
          format('<text class="small" x="%.1f" y="%d">%s, %d %% did not run</text>',
                 left + 8, top + 13, h(Text::Size.human(one["iseq_bytes"])), share)
      end
    end
  end
end
