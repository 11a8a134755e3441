# frozen_string_literal: true

require_relative "../../model/remedies"
require_relative "../../text/view"

module Culet
  module Limit
    # The answer of `culet limit` for a terminal.
    class Table < Text::View
      # @param document [Hash{String => Object}] as Inquiry returns it
      # @param title [String] of the process
      def initialize(document, problems:, title:, **options)
        super(**options)
        @document = document
        @problems = problems
        @title = title
      end

      private

      def sections = [heading, figures, steps, note_lines([*advice, *@problems])]

      def heading = bold("Process #{@document["pid"]} (#{printable(@title)})")

      def figures
        limit, used, headroom = @document.values_at("limit_bytes", "used_bytes", "headroom_bytes")
        return "no memory limit; #{amount(used)} in use" unless limit

        ["limit     #{amount(limit)}, #{printable(@document["source"])}",
         "in use    #{amount(used)}#{" (#{percent(used, limit)})" if used}",
         "headroom  #{amount(headroom)}"].join("\n")
      end

      def amount(bytes) = bytes ? Text::Size.limit(bytes, @document["limit_bytes"]) : "unknown"

      def steps
        return if @document["steps"].empty?

        rows = @document["steps"].map do |step|
          time = Time.at(step["at"]).strftime("%F %T")
          "#{time}  #{printable(step["step"]).ljust(12)} #{amount(step["freed_bytes"])}"
        end
        [bold("Steps, and what they freed"), *rows].join("\n")
      end

      def advice
        return [] unless @document["limit_bytes"]

        used, limit = @document.values_at("used_bytes", "limit_bytes")
        [*(kept unless @document["kept"]), *(explained if Thresholds.close_to_limit?(used, limit))]
      end

      def kept = "The process does not keep the limit itself: #{Remedies.new([])["limit"]}."

      def explained = "culet explain #{@document["pid"]} says why the memory is in use, and what to do."
    end
  end
end
