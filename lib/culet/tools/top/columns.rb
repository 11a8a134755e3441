# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"

module Culet
  module Top
    # One column of the table: what it shows of a process, and how.
    class Column
      MINUTE = 60
      HOUR = 3600
      DAY = 86_400
      # A count is in millions from here.
      MILLIONS = 10_000_000
      # An age is in days alone from here.
      DAYS = 100 * DAY
      private_constant :MINUTE, :HOUR, :DAY, :MILLIONS, :DAYS

      # name: key in the order of columns; heading: at most as wide as the column; width: columns of the terminal;
      # about: one line for the help
      attr_reader :name, :heading, :width, :about

      # @param kind [Symbol] :size, :growth, :count, :share, :rate, :age or :number
      # @yieldparam process [Hash] of a moment
      # @yieldreturn [Numeric, nil]
      def initialize(name, heading, kind, width, about, &value)
        @name = name
        @heading = heading
        @about = about
        @kind = kind
        @width = width
        @value = value
      end

      # @param process [Hash] of a moment
      # @return [Numeric, nil] nil: not known
      def value(process) = @value.call(process)

      # @return [Boolean] whether the largest value comes first, unless the order is reversed
      def descending? = %i[age number].none?(@kind)

      # @param process [Hash] of a moment
      # @param unit [Numeric] bytes of the unit of all sizes
      # @param at [Float] seconds since 1970, for the age
      # @return [String] "-" where the value is not known
      def cell(process, unit:, at:)
        value = value(process)
        value.nil? ? "-" : text(value, unit, at)
      end

      private

      def text(value, unit, at)
        case @kind
        when :size then size(value, unit)
        when :growth then growth(size(value, unit, room: width - 1))
        when :count then short(value, 1000)
        when :share then Text::Numbers.decimal(value, 0)
        when :rate then value < 99.95 ? Text::Numbers.decimal(value, 1) : short(value.round, 10_000)
        when :age then age(at - value)
        else value.to_s
        end
      end

      def size(bytes, unit, room: width)
        text = Text::Size.cell(bytes, unit: unit)
        text.size > room ? Text::Size.cell(bytes, digits: 0, unit: unit) : text
      end

      def growth(text) = text.match?(/\A[0.]+\z|\A-/) ? text : "+#{text}"

      # @param limit [Integer] from which a count is in thousands
      def short(count, limit)
        return count.to_s if count < limit

        count < MILLIONS ? "#{count / 1000}k" : "#{count / 1_000_000}M"
      end

      def age(seconds)
        seconds = [seconds, 0].max.to_i
        return "#{seconds / DAY}d" if seconds >= DAYS
        return format("%dd%02dh", seconds / DAY, seconds % DAY / HOUR) if seconds >= DAY
        return format("%dh%02dm", seconds / HOUR, seconds % HOUR / MINUTE) if seconds >= HOUR

        format("%d:%02d", seconds / MINUTE, seconds % MINUTE)
      end
    end

    # The columns in the order of the table, which is that of their importance too: a narrow terminal shows the first
    # ones. The title stands behind them and takes the rest of the line.
    module Columns
      # A figure of the agent.
      figure = ->(name) { ->(process) { process.dig("figures", name) } }
      # A figure of every process.
      own = ->(name) { ->(process) { process[name] } }
      shared = lambda do |process|
        bytes, all = process.values_at("shared_bytes", "rss_bytes")
        100.0 * bytes / all if bytes && all&.positive?
      end

      # Every column but the title.
      ALL = [
        Column.new(:pid, "PID", :number, 4, "process number", &own["pid"]),
        Column.new(:pss, "PSS", :size, 6, "resident memory, shared pages divided among processes", &own["pss_bytes"]),
        Column.new(:private, "PRIV", :size, 6, "resident memory of this process alone", &own["private_bytes"]),
        Column.new(:shared, "SHR%", :share, 4, "share of its resident memory that others have too", &shared),
        Column.new(:growth, "GROWTH", :growth, 6, "growth of PRIV since culet started", &own["growth_bytes"]),
        Column.new(:malloc, "MALLOC", :size, 6, "memory that malloc handed out", &figure["malloc_used_bytes"]),
        Column.new(:malloc_free, "FREE", :size, 5, "free memory that malloc keeps", &figure["malloc_free_bytes"]),
        Column.new(:slots, "SLOTS", :count, 5, "Ruby's slots in use, in thousands (k)", &figure["live_slots"]),
        Column.new(:gc, "GC/M", :rate, 4, "garbage collections per minute", &figure["gc_per_minute"]),
        Column.new(:rss, "RSS", :size, 6, "resident memory", &own["rss_bytes"]),
        Column.new(:free_slots, "F.SLOTS", :count, 7, "Ruby's free slots", &figure["free_slots"]),
        Column.new(:major, "MAJOR", :count, 5, "major collections since the start", &figure["major_gcs"]),
        Column.new(:swap, "SWAP", :size, 5, "memory in swap space", &own["swap_bytes"]),
        Column.new(:trimmed, "TRIMMED", :size, 7, "memory that trims returned", &figure["trim_returned_bytes"]),
        Column.new(:threads, "THR", :count, 4, "threads", &own["threads"]),
        Column.new(:age, "AGE", :age, 6, "time since the start of the process", &own["started_at"])
      ].freeze

      # The first columns are worth a short title.
      ESSENTIAL = 9
      SHORT_TITLE = 14
      LONG_TITLE = 32
      # Titles of a terminal that is narrower than any in use.
      LEAST_TITLE = 8
      GAP = 1
      private_constant :ESSENTIAL, :SHORT_TITLE, :LONG_TITLE, :LEAST_TITLE, :GAP

      module_function

      # @param width [Numeric] columns of the terminal; Float::INFINITY: no limit
      # @return [Array<Column>] those that fit
      def fitting(width)
        rest = width
        ALL.each_with_index.take_while do |column, index|
          title = if index < 2 then LEAST_TITLE
                  elsif index < ESSENTIAL then SHORT_TITLE
                  else LONG_TITLE
                  end
          (rest -= column.width + GAP) >= title
        end.map(&:first)
      end

      # @param name [Symbol]
      # @return [Column, nil] nil for the title
      def find(name) = ALL.find { |column| column.name == name }
    end
  end
end
