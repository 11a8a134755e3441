# frozen_string_literal: true

require_relative "numbers"
require_relative "size"

module Culet
  module Text
    # Bytes over time as a plot of braille characters, with a letter at the end of each curve.
    class Plot
      # Bit of each of a character's 2 x 4 dots, [column][row]; Unicode's Braille Patterns block, U+2800 to U+28FF.
      DOTS = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]].freeze
      BLANK = 0x2800
      # A title is not cut shorter than this.
      LEAST_TITLE = 8
      LETTERS = [*"a".."z"].freeze
      private_constant :DOTS, :BLANK, :LEAST_TITLE, :LETTERS

      # One curve: its name in the legend, its points [seconds, bytes] by time, and a Colors::Color.
      Curve = Struct.new(:name, :points, :color, :letter, keyword_init: true)

      # @param io [IO] where the plot would go
      # @param env [Hash] the environment
      # @return [Boolean] whether that is a terminal that shows braille
      def self.supported?(io: $stdout, env: ENV)
        locale = [env["LC_ALL"], env["LC_CTYPE"], env["LANG"]].find { |value| value && !value.empty? }.to_s
        # The kernel's own console has no braille glyphs.
        io.tty? && !["dumb", "linux", "", nil].include?(env["TERM"]) && locale.match?(/utf-?8/i)
      end

      # @param curves [Array<Curve>] in the order of their letters
      # @param title [String] of the plot
      # @param about [String] what is plotted, behind the title
      # @param front [String, nil] name of the curve that is drawn over the others
      # @param width [Integer, nil] columns in characters; 80 when unknown
      # @param height [Integer] rows in characters, without the axis
      # @param color [Boolean] whether to use ANSI colours
      def initialize(curves, title:, about:, front: nil, width: 80, height: 12, color: false)
        lettered = curves.each_with_index.map do |curve, index|
          Curve.new(**curve.to_h, letter: LETTERS.fetch(index, "*"))
        end
        @curves = lettered.partition { |curve| curve.name != front }.flatten(1)
        @title = title
        @about = about
        @width = [width || 80, 30].max
        @height = [height, 3].max
        @color = color
      end

      # @return [String] title, plot, axis and legend
      def to_s
        seconds, bytes = [0, 1].map { |axis| curves.flat_map { |curve| curve.points.map { |point| point[axis] } }.max }
        symbol, size = Size.unit(bytes)
        labels = [bytes, bytes.fdiv(2)].map { |value| "#{Numbers.significant(value / size)} #{symbol}" } << "0"
        margin = labels.map(&:length).max
        rows = plot(seconds: seconds, bytes: bytes, columns: width - margin - 2)
        [heading, *with_axis(rows, labels, margin), axis(seconds, margin), *legend].join("\n") << "\n"
      end

      private

      attr_reader :curves, :width, :height, :color

      # @return [Array<Array<String>>] rows of cells
      def plot(seconds:, bytes:, columns:)
        bits = Array.new(height) { Array.new(columns, 0) }
        drawn = Array.new(height) { Array.new(columns) }
        ends = curves.map do |curve|
          dots = dots(curve.points, seconds: seconds, bytes: bytes, columns: columns)
          dots.each_cons(2) { |from, to| line(from, to) { |x, y| set(bits, drawn, x, y, curve) } }
          set(bits, drawn, *dots.last, curve)
          [dots.last, curve]
        end
        cells = bits.each_with_index.map do |row, y|
          row.each_with_index.map do |mask, x|
            mask.zero? ? " " : paint((BLANK + mask).chr(Encoding::UTF_8), drawn[y][x])
          end
        end
        mark_ends(cells, ends, columns)
      end

      def dots(points, seconds:, bytes:, columns:)
        points.map do |at, size|
          [(ratio(at, seconds) * (columns * 2 - 1)).round, ((1 - ratio(size, bytes)) * (height * 4 - 1)).round]
        end
      end

      def ratio(part, whole) = whole.to_f.zero? ? 0.0 : part.fdiv(whole)

      def set(bits, drawn, x, y, curve)
        bits[y / 4][x / 2] |= DOTS[x % 2][y % 4]
        drawn[y / 4][x / 2] = curve
      end

      # Every dot between two, by Bresenham's algorithm (IBM Systems Journal 4:1, 1965).
      def line(from, to)
        (x, y), (x_end, y_end) = from, to
        dx = (x_end - x).abs
        dy = -(y_end - y).abs
        step_x = x < x_end ? 1 : -1
        step_y = y < y_end ? 1 : -1
        error = dx + dy
        loop do
          yield x, y
          break if x == x_end && y == y_end

          twice = 2 * error
          if twice >= dy
            error += dy
            x += step_x
          end
          if twice <= dx
            error += dx
            y += step_y
          end
        end
      end

      # Letters mark the curves without colour; one that would cover another moves to the next free row.
      def mark_ends(cells, ends, columns)
        taken = {}
        ends.each do |(x, y), curve|
          column = [x / 2 + 1, columns - 1].min
          row = (0...height).sort_by { |one| (one - y / 4).abs }.find { |one| !taken[[one, column]] }
          next unless row

          taken[[row, column]] = true
          cells[row][column] = paint(curve.letter, curve)
        end
        cells
      end

      def heading
        room = [width - @about.length - 2, LEAST_TITLE].max
        title = (@title.length > room ? "#{@title[0, room - 1]}…" : @title).tr("\n", " ")
        about = width < LEAST_TITLE + @about.length + 2 ? "" : @about
        color ? "\e[1m#{title}\e[0m #{about}".rstrip : [title, about].reject(&:empty?).join(": ")
      end

      def with_axis(rows, labels, margin)
        at = { 0 => labels[0], height / 2 => labels[1], height - 1 => labels[2] }
        rows.each_with_index.map do |row, index|
          "#{at.fetch(index, "").rjust(margin)} #{at.key?(index) ? "┤" : "│"}#{row.join.rstrip}"
        end
      end

      def axis(seconds, margin)
        right = "#{Numbers.significant(seconds)} s"
        "#{" " * margin} └#{"─" * (width - margin - 2)}\n#{" " * (margin + 2)}0#{right.rjust(width - margin - 3)}"
      end

      def legend
        lines = [[]]
        used = 0
        curves.sort_by(&:letter).each do |curve|
          text = "#{curve.letter} #{curve.name}"
          if used.positive? && used + text.length + 3 > width
            lines << []
            used = 0
          end
          lines.last << paint(text, curve)
          used += text.length + 3
        end
        lines.map { |line| "  #{line.join("   ")}" }
      end

      def paint(text, curve) = color ? "\e[38;5;#{curve.color.terminal}m#{text}\e[0m" : text
    end
  end
end
