# frozen_string_literal: true

require_relative "../../text/size"
require_relative "line"

module Culet
  module Top
    # The last events, one line each.
    class History
      # No screen has room for more.
      MOST = 100
      # Kinds of events: the words before the event's text, and the words before its bytes.
      KINDS = { "fork" => ["started"], "exit" => ["ended"], "restart" => ["replaces a process that ended"],
                "major_gc" => [], "trim" => [nil, "returned"], "limit" => %w[limit freed] }.freeze
      NOTABLE = %w[exit restart limit].freeze
      private_constant :MOST, :KINDS, :NOTABLE

      def initialize
        @events = []
      end

      # @param events [Array<Hash>] of a moment
      def add(events)
        @events = (@events + events).last(MOST)
      end

      # @return [Integer]
      def size = @events.size

      # @param count [Integer] how many
      # @param unicode [Boolean] whether the terminal shows characters beyond ASCII
      # @return [Array<Line>] the last ones, the latest first
      def lines(count, unicode: true) = @events.last(count).reverse.map { |event| line(event, unicode) }

      private

      def line(event, unicode)
        before, word = KINDS.fetch(event["kind"]) { |kind| [kind] }
        text = [before, event["text"]].compact.join(": ")
        text = "#{text}, #{word || "size"} #{Text::Size.human(event["bytes"])}" if event["bytes"]
        Line.new.add("#{Time.at(event["at"]).strftime("%T")} #{event["pid"].to_s.rjust(7)}  ", :dim)
            .add(Line.clean(text, unicode: unicode), (:fair if NOTABLE.include?(event["kind"])))
      end
    end
  end
end
