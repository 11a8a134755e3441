# frozen_string_literal: true

require_relative "../tools/compare/report/model"
require_relative "palette"

module Culet
  module Compare
    module Report
      # RSS over time as a plot of braille characters: one panel per workload,
      # one curve per allocator (the median run), a letter at each curve's end.
      class TerminalPlot
        # Bit of each of a character's 2 x 4 dots, [column][row]; Unicode's
        # Braille Patterns block, U+2800 to U+28FF.
        DOTS = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]].freeze
        BLANK = 0x2800
        # Of a name, so much is always shown.
        LEAST_NAME = 8
        private_constant :LEAST_NAME

        # @param io [IO] where the plot would go
        # @param env [Hash] the environment
        # @return [Boolean] whether a terminal is there and shows braille
        def self.supported?(io: $stdout, env: ENV)
          locale = [env["LC_ALL"], env["LC_CTYPE"], env["LANG"]].find { |value| value && !value.empty? }.to_s
          # The kernel's own console has no braille glyphs.
          io.tty? && !["dumb", "linux", "", nil].include?(env["TERM"]) && locale.match?(/utf-?8/i)
        end

        # @param document [Hash] the result document of a comparison
        # @param width [Integer, nil] columns in characters; 80 when unknown
        # @param height [Integer] rows of a panel in characters, without its axis
        # @param color [Boolean] whether to use ANSI colours
        # @param about [String] what is plotted, behind the workload's name
        def initialize(document, width: 80, height: 12, color: false, about: "RSS over time, median run")
          @about = about
          @model = Model.new(document)
          @palette = Palette.new(@model)
          @width = [width || 80, 30].max
          @height = [height, 3].max
          @color = color
        end

        # @return [String] the panels; "" when no run has samples
        def to_s
          model.workloads.select(&:samples?).map { |workload| panel(workload) }.join("\n")
        end

        private

        attr_reader :model, :palette, :width, :height, :color

        Curve = Struct.new(:allocator, :letter, :points, keyword_init: true)

        def panel(workload)
          curves = curves(workload)
          seconds = curves.flat_map { |curve| curve.points.map(&:first) }.max
          bytes = curves.flat_map { |curve| curve.points.map(&:last) }.max
          symbol, size = METRIC.fetch("peak_rss_bytes").unit([bytes])
          labels = ["#{Figures.number(bytes / size)} #{symbol}", "#{Figures.number(bytes / size / 2)} #{symbol}", "0"]
          margin = labels.map(&:length).max
          rows = plot(curves, seconds: seconds, bytes: bytes, columns: width - margin - 2)
          [title(workload), *with_axis(rows, labels, margin), axis(seconds, margin), *legend(curves)].join("\n") << "\n"
        end

        # culet last, so that its curve lies on top.
        def curves(workload)
          measured = workload.contenders.select(&:median_run)
          curves = measured.zip("a".."z").map do |contender, letter|
            points = contender.median_run["samples"].map { |sample| [sample["at_seconds"].to_f, sample["rss_bytes"].to_f] }
            Curve.new(allocator: contender.allocator, letter: letter || "*", points: points.sort_by(&:first))
          end
          curves.sort_by.with_index { |curve, index| [curve.allocator == model.subject ? 1 : 0, index] }
        end

        # @return [Array<Array<String>>] rows of cells
        def plot(curves, seconds:, bytes:, columns:)
          bits = Array.new(height) { Array.new(columns, 0) }
          owners = Array.new(height) { Array.new(columns) }
          ends = curves.map do |curve|
            dots = dots(curve.points, seconds: seconds, bytes: bytes, columns: columns)
            dots.each_cons(2) { |from, to| line(from, to) { |x, y| set(bits, owners, x, y, curve.allocator) } }
            set(bits, owners, *dots.last, curve.allocator)
            [dots.last, curve]
          end
          cells = bits.each_with_index.map do |row, y|
            row.each_with_index.map { |mask, x| mask.zero? ? " " : paint((BLANK + mask).chr(Encoding::UTF_8), owners[y][x]) }
          end
          mark_ends(cells, ends, columns)
        end

        def dots(points, seconds:, bytes:, columns:)
          points.map do |at, rss|
            [(ratio(at, seconds) * (columns * 2 - 1)).round, ((1 - ratio(rss, bytes)) * (height * 4 - 1)).round]
          end
        end

        def ratio(part, whole) = whole.to_f.zero? ? 0.0 : part / whole

        def set(bits, owners, x, y, allocator)
          bits[y / 4][x / 2] |= DOTS[x % 2][y % 4]
          owners[y / 4][x / 2] = allocator
        end

        # Every dot between two, by Bresenham's line algorithm (IBM Systems
        # Journal 4:1, 1965).
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
            (error += dy; x += step_x) if twice >= dy
            (error += dx; y += step_y) if twice <= dx
          end
        end

        # Letters tell curves apart without colour; one that would cover another
        # moves to the next free row, up or down.
        def mark_ends(cells, ends, columns)
          taken = {}
          ends.each do |(x, y), curve|
            column = [x / 2 + 1, columns - 1].min
            row = (0...height).sort_by { |one| (one - y / 4).abs }.find { |one| !taken[[one, column]] }
            next unless row

            taken[[row, column]] = true
            cells[row][column] = paint(curve.letter, curve.allocator)
          end
          cells
        end

        def title(workload)
          room = [width - @about.length - 2, LEAST_NAME].max
          name = workload.name.length > room ? "#{workload.name[0, room - 1]}…" : workload.name
          name = name.tr("\n", " ")
          text = width < LEAST_NAME + @about.length + 2 ? "" : @about
          color ? "\e[1m#{name}\e[0m #{text}".rstrip : [name, text].reject(&:empty?).join(": ")
        end

        def with_axis(rows, labels, margin)
          at = { 0 => labels[0], height / 2 => labels[1], height - 1 => labels[2] }
          rows.each_with_index.map { |row, index| "#{at.fetch(index, "").rjust(margin)} #{at.key?(index) ? "┤" : "│"}#{row.join.rstrip}" }
        end

        def axis(seconds, margin)
          right = "#{Figures.number(seconds)} s"
          "#{" " * margin} └#{"─" * (width - margin - 2)}\n#{" " * (margin + 2)}0#{right.rjust(width - margin - 3)}"
        end

        def legend(curves)
          entries = curves.sort_by(&:letter).map { |curve| [paint("#{curve.letter} #{curve.allocator}", curve.allocator), curve.allocator.length + 2] }
          lines = [[]]
          used = 0
          entries.each do |text, length|
            (lines << []; used = 0) if used.positive? && used + length + 3 > width
            lines.last << text
            used += length + 3
          end
          lines.map { |line| "  #{line.join("   ")}" }
        end

        def paint(text, allocator)
          color ? "\e[38;5;#{palette.terminal(allocator)}m#{text}\e[0m" : text
        end
      end
    end
  end
end
