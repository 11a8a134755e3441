# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "line"

module Culet
  module Top
    # The lines above the table: how many processes, what they cost together, and how much of the limit is left.
    class Header
      # Parts of the limit, from which the bar changes its colour; those at which culet/limit acts.
      FAIR = 0.85
      BAD = 0.95
      # The bar is this wide in a terminal that has room for it.
      BAR_COLUMNS = 30
      BAR_MIN_COLUMNS = 70
      # Shared bytes are left out: their sum counts each page as often as it is shared.
      TOTALS = { "PSS" => "pss_bytes", "growth" => "growth_bytes", "private" => "private_bytes",
                 "swap" => "swap_bytes" }.freeze
      private_constant :FAIR, :BAD, :BAR_COLUMNS, :BAR_MIN_COLUMNS, :TOTALS

      # @param moment [Hash]
      # @param unit [String] of the sizes in the table: "MB"
      # @param columns [Integer] of the terminal
      def initialize(moment, unit:, columns:)
        @moment = moment
        @unit = unit
        @columns = columns
      end

      # @param state [State, nil] nil: the moment is printed once
      def lines(state = nil) = [first(state), totals, limit]

      private

      def first(state)
        line = Line.new.add("culet top", :bold).add("  #{Time.at(@moment["at"]).strftime("%T")}")
        add(line, "PAUSED", :fair) if state&.paused?
        add(line, counted)
        add(line, "sizes in #{@unit}")
        line
      end

      def counted
        processes = @moment["processes"]
        ruby = processes.count { |process| process["ruby"] }
        "#{Text::Numbers.count(processes.size, "process", "processes")}#{", #{ruby} Ruby" if ruby < processes.size}"
      end

      def totals
        TOTALS.each_with_object(Line.new) do |(name, key), line|
          next if name == "swap" && @moment["total"][key].to_i.zero?

          text = amount(@moment["total"][key], signed: name == "growth")
          add(line, "#{name} #{text}", (:bold if name == "PSS"))
        end
      end

      def limit
        limit, used, headroom = (@moment["limit"] || {}).values_at("limit_bytes", "used_bytes", "headroom_bytes")
        return Line.new.add("no memory limit", :dim) unless limit
        return Line.new.add("limit #{Text::Size.limit(limit)}, use not known") unless used

        share = used.fdiv(limit)
        line = Line.new.add("limit ")
        line.add("[").add(*bar(share)).add(" " * (BAR_COLUMNS - filled(share))).add("] ") if @columns >= BAR_MIN_COLUMNS
        line.add(Text::Numbers.percent(share, 1, digits: 0), style(share))
        add(line, "headroom #{Text::Size.limit(headroom, limit)}", :bold)
        add(line, "#{Text::Size.limit(used, limit)} of #{Text::Size.limit(limit)}")
        add(line, Line.clean(@moment["limit"]["source"]))
        line
      end

      def bar(share) = ["|" * filled(share), style(share)]

      def filled(share) = (BAR_COLUMNS * share).round.clamp(0, BAR_COLUMNS)

      def style(share)
        return :bad if share >= BAD

        share >= FAIR ? :fair : :good
      end

      def add(line, text, style = nil)
        gap = line.width.zero? ? "" : "  "
        line.add(gap).add(text, style) if line.width + gap.size + Text::Lines.width(text) <= @columns
      end

      def amount(bytes, signed: false)
        return "-" if bytes.nil?

        signed ? Text::Size.signed(bytes) : Text::Size.human(bytes)
      end
    end
  end
end
