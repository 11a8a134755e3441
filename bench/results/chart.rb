# frozen_string_literal: true

require "victor"
require_relative "table"

module Bench
  # Bars in panels, each with a scale of its own, as an SVG file that is readable on light and dark pages.
  class Chart
    Bar = Struct.new(:label, :row, :highlighted)
    # title; unit; bars: from top to bottom
    Panel = Struct.new(:title, :unit, :bars)

    WIDTH = 840
    MARGIN = 16
    GAP = 28
    LINE = 20
    TITLE = 30
    VALUE_WIDTH = 52
    CHARACTER_WIDTH = 7
    LABEL_GAP = 8
    STYLE = {
      ".paper" => { fill: "#ffffff" },
      "text" => { font: '12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif', fill: "#1f2328" },
      ".title" => { font_weight: 600, font_size: "13px" },
      ".unit" => { fill: "#59636e" },
      ".bar" => { fill: "#afb8c1" },
      ".culet" => { fill: "#d55e00" },
      ".interval" => { stroke: "#59636e", stroke_width: 1.2 },
      "@media (prefers-color-scheme: dark)" => {
        ".paper" => { fill: "#0d1117" }, "text" => { fill: "#e6edf3" }, ".unit" => { fill: "#9198a1" },
        ".bar" => { fill: "#545d68" }, ".culet" => { fill: "#f0803c" }, ".interval" => { stroke: "#9198a1" }
      }
    }.freeze

    # @param title [String] for readers who do not see it
    # @param columns [Integer] panels side by side
    def initialize(title, panels, columns:)
      @title = title
      @panels = panels
      @columns = [columns, panels.size].min
    end

    # @return [String] the SVG document
    def to_s
      rows = @panels.each_slice(@columns).to_a
      tops = rows.each_with_object([MARGIN]) { |panels, all| all << (all.last + height(panels) + GAP) }
      bottom = tops.last - GAP + MARGIN
      image = Victor::SVG.new(viewBox: "0 0 #{WIDTH} #{bottom}", width: WIDTH, height: bottom, role: "img",
                              aria_label: @title)
      image.css = STYLE
      image.rect(width: WIDTH, height: bottom, rx: 6, class: "paper")
      rows.zip(tops) do |panels, top|
        panels.each_with_index { |panel, column| draw(image, panel, MARGIN + (column * (width + GAP)), top) }
      end
      "#{image.render.gsub(/\n{2,}/, "\n").strip}\n"
    end

    private

    def width = (WIDTH - (2 * MARGIN) - (GAP * (@columns - 1))) / @columns
    def height(panels) = TITLE + (panels.map { |panel| panel.bars.size }.max * LINE)

    def draw(image, panel, left, top)
      image.element(:text, x: left, y: top + 16) do
        image.element(:tspan, panel.title, class: "title")
        image.element(:tspan, panel.unit, class: "unit", dx: 6) unless panel.unit.empty?
      end
      labels = (panel.bars.map { |bar| bar.label.size }.max * CHARACTER_WIDTH) + LABEL_GAP
      scale = (width - labels - VALUE_WIDTH).fdiv(panel.bars.map { |bar| bar.row.high || bar.row.median }.max)
      panel.bars.each_with_index do |bar, index|
        draw_bar(image, bar, left + labels, top + TITLE + (index * LINE), scale, left)
      end
    end

    def draw_bar(image, bar, start, top, scale, left)
      values = [bar.row.median, bar.row.low, bar.row.high]
      median, low, high = values.map { |value| value && (start + (value * scale)).round(1) }
      weight = bar.highlighted ? { font_weight: 600 } : {}
      image.text(bar.label, x: left, y: top + 12, **weight)
      image.rect(x: start, y: top + 2, width: (median - start).round(1), height: 12,
                 class: bar.highlighted ? "bar culet" : "bar")
      image.line(x1: low, x2: high, y1: top + 8, y2: top + 8, class: "interval") if high && high > low
      image.text(Table.number(bar.row), x: [median, high].compact.max + 5, y: top + 12, **weight)
    end
  end
end
