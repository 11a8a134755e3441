# frozen_string_literal: true

require "erb"
require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "row"

module Culet
  module Strings
    # The picture of buffers, the strings in them, and savable bytes: String objects on the left, their bytes on the
    # right. An SVG without scripts and external resources.
    class Graph
      WIDTH = 980
      MARGIN = 24
      # From the top to the first row: title, bar, legend.
      HEAD = 132
      # Groups drawn.
      MOST = 8
      # Groups of suffixes among them, if suffixes matter.
      ENDS = 3
      # Groups that save less than this part are omitted.
      LEAST_PART = 100
      BAR = 22
      # Okabe and Ito (2008).
      STAYS = "#009E73"
      GOES = "#D55E00"
      OBJECT = "#0072B2"
      STYLE = <<~CSS.freeze
        text { font: 13px ui-monospace, "DejaVu Sans Mono", monospace; fill: #1d1f23; white-space: pre; }
        .title { font: 600 16px system-ui, "DejaVu Sans", sans-serif; } .words { font: 13px system-ui, "DejaVu Sans", sans-serif; }
        .small { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #62666e; } .gain { font: 600 13px system-ui, "DejaVu Sans", sans-serif; fill: #a84600; }
        .paper { fill: #fdfdfc; } .stays { fill: #d8f0e8; stroke: #{STAYS}; stroke-width: 1.5; } .goes { fill: #fbe7da; stroke: #{GOES}; stroke-width: 1.2; stroke-dasharray: 5 3; }
        .object { fill: #dcecf6; stroke: #{OBJECT}; stroke-width: 1.2; } .edge { fill: none; stroke: #{OBJECT}; stroke-width: 1.2; }
        .gone { fill: none; stroke: #{GOES}; stroke-width: 1; stroke-dasharray: 4 3; } .instead { fill: none; stroke: #{STAYS}; stroke-width: 1.4; }
        .rule { stroke: #e2e3e0; stroke-width: 1; } .rest { fill: #e2e3e0; stroke: #a3a7af; stroke-width: 1; }
        @media (prefers-color-scheme: dark) {
          text { fill: #e9e9e7; } .small { fill: #a3a7af; } .gain { fill: #f0985a; } .paper { fill: #15171b; } .stays { fill: #12382e; } .goes { fill: #43240f; }
          .object { fill: #123247; } .rule { stroke: #30343b; } .rest { fill: #30343b; }
        }
      CSS
      private_constant :HEAD, :MOST, :ENDS, :LEAST_PART, :BAR, :STAYS, :GOES, :OBJECT, :STYLE

      # @param text [Object]
      # @return [String] for SVG and HTML
      def self.escape(text)
        ERB::Util.html_escape(text.to_s.gsub(/[^\t\n\r -\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/, "?"))
      end

      def initialize(findings)
        @findings = findings
      end

      # @return [String] an SVG document
      def to_s
        body = []
        top = HEAD
        groups.each do |group|
          drawn = row(group, top)
          body << drawn.to_s
          top += drawn.height
        end
        if groups.empty?
          body << text(MARGIN, top + 14, "There are no duplicates and no suffixes: nothing to draw.", "words")
        end
        frame(body.join("\n"), top + MARGIN)
      end

      private

      # The largest groups, and some suffixes where their sum matters.
      def groups
        @groups ||= begin
          all = @findings.groups.select do |group|
            group.gain_bytes * LEAST_PART >= @findings.shareable_bytes
          end.first(MOST)
          ends = @findings.groups.reject(&:duplicate?).first(ENDS)
          @findings.suffix_bytes * LEAST_PART >= @findings.shareable_bytes ? (all.first(MOST - ends.size) | ends) : all
        end
      end

      def row(group, top)
        return BundleRow.new(group, top: top) if group.duplicate?

        count = Text::Numbers.count(@findings.suffixes, "such string")
        SuffixRow.new(group, top: top, all: "#{Text::Size.human(@findings.suffix_bytes)} for all #{count}")
      end

      def frame(body, height)
        <<~SVG
          <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 #{WIDTH} #{height}" width="#{WIDTH}" height="#{height}" role="img" aria-label="#{Graph.escape(title)}">
          <style>#{STYLE}</style>
          <rect class="paper" width="#{WIDTH}" height="#{height}"/>
          #{text(MARGIN, 34, title, "title")}
          #{bar}
          #{legend}
          #{body}
          </svg>
        SVG
      end

      def title
        "#{@findings.source.name}: #{Text::Numbers.count(@findings.strings, "string")}, " \
          "#{Text::Size.human(@findings.string_bytes)}"
      end

      # All bytes of strings: needed and savable.
      def bar
        all = [@findings.string_bytes, 1].max
        left = MARGIN
        parts = { "stays" => all - @findings.shareable_bytes, "goes" => @findings.shareable_bytes }
        parts.map do |name, bytes|
          width = (WIDTH - (2 * MARGIN)) * bytes.fdiv(all)
          rect = %(<rect class="#{name}" x="#{left.round(1)}" y="50" width="#{width.round(1)}" height="#{BAR}"/>)
          left += width
          rect
        end.join
      end

      def legend
        needed = @findings.string_bytes - @findings.shareable_bytes
        entries = [["object", "String object"], ["stays", "needed: #{Text::Size.human(needed)}"],
                   ["goes", "savable: #{Text::Size.human(@findings.shareable_bytes)}"]]
        left = MARGIN
        entries.map do |name, words|
          mark = %(<rect class="#{name}" x="#{left}" y="90" width="16" height="12" rx="2"/>) +
                 text(left + 24, 101, words, "words")
          left += 64 + (words.size * 7)
          mark
        end.join("\n")
      end

      def text(left, top, words, kind) = %(<text class="#{kind}" x="#{left}" y="#{top}">#{Graph.escape(words)}</text>)
    end
  end
end
