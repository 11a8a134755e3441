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

      # @return [Symbol] key in the order of columns
      attr_reader :name

      # @return [String] at most as wide as the column
      attr_reader :heading

      # @return [Integer] columns of the terminal
      attr_reader :width

      # @return [String] one line for the help
      attr_reader :about

      # @param name [Symbol]
      # @param heading [String]
      # @param kind [Symbol] :size, :growth, :count, :share, :rate, :age or :number
      # @param width [Integer] columns of the terminal
      # @param about [String]
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
  end
end
