# frozen_string_literal: true

require_relative "../../text/figures"
require_relative "../../text/lines"
require_relative "findings"

module Culet
  module Autopsy
    # Three lines for a program's stderr.
    class Summary
      include Text::Figures

      # Levels, sites and requests of a line.
      FEW = 3
      private_constant :FEW

      def initialize(findings)
        @findings = findings
      end

      # @return [Array<String>]
      def lines = [death, memory, work].map { |line| Text::Lines.printable(line) }

      private

      def box = @findings.box

      def death
        limit = @findings.limit_bytes
        used = @findings.used_bytes
        figures = "; the last figures: #{Text::Size.limit(used, limit)} of #{Text::Size.limit(limit)}" if limit && used
        "process #{box.pid} (#{box.program}) #{@findings.cause.text}, at " \
          "#{box.last_at.utc.strftime("%F %T")} UTC#{figures}"
      end

      def memory
        all = @findings.reading&.levels.to_h
        levels = all.max_by(FEW, &:last).map { |name, bytes| "#{Levels::TITLES.fetch(name)} #{size(bytes)}" }
        return "what it held is not known" if levels.empty?

        "it held #{size(@findings.reading.resident_bytes)}: #{levels.join(", ")}#{sites}"
      end

      def sites
        rows = @findings.lines.first(FEW)
        return "; the memory profile was off (CULET_PROFILE=1)" if rows.empty?

        "; most from #{rows.map { |row| "#{row.name} (#{size(row.bytes)})" }.join(", ")}"
      end

      def work
        running = @findings.running.first(FEW)
        events = running.empty? ? @findings.finished.first(1) : running
        text = events.map { |event| "#{event.label} (#{age(event)})" }.join(", ")
        text = "no request or job is known" if events.empty?
        text = "running: #{text}" if running.any?
        text = "the last one: #{text}" if running.empty? && events.any?
        "#{text}; more: culet autopsy #{box.path}"
      end

      def age(event) = "#{Text::Numbers.decimal((event.ended_at || box.last_at) - event.started_at, 1)} s"
    end
  end
end
