# frozen_string_literal: true

require_relative "../../system/processes"
require_relative "../../text/lines"

module Culet
  module Top
    # The sentences below the table: why figures are missing, and what to do.
    class Notes
      # Maximum number of named processes.
      MOST_NAMED = 4
      private_constant :MOST_NAMED

      def initialize
        @reasons = {}
      end

      # @param moment [Hash]
      # @return [Array<String>]
      def call(moment)
        processes = moment["processes"]
        [unreadable(processes), without_agent(processes)].compact
      end

      private

      def unreadable(processes)
        hidden = processes.select { |process| process["pss_bytes"].nil? }
        @reasons.keep_if { |key, _| hidden.any? { |process| key(process) == key } }
        reasons = hidden.filter_map { |process| reason(process) }
        return if reasons.empty?

        more = reasons.size - 1
        more.zero? ? "#{reasons.first}." : "#{reasons.first}; so it is with #{more} more."
      end

      # @return [String, nil] nil when the process has ended or may be read after all
      def reason(process) = @reasons.fetch(key(process)) { |key| @reasons[key] = refusal(process["pid"]) }

      def refusal(pid)
        Processes::Live.new(pid).read("smaps_rollup")
        nil
      rescue Error => e
        e.message if File.exist?("/proc/#{pid}")
      end

      def key(process) = process.values_at("pid", "start_ticks")

      def without_agent(processes)
        missing = processes.select { |process| process["ruby"] && process["pss_bytes"] && process["figures"].nil? }
        missing.map! { |process| process["pid"] }
        return if missing.empty?

        names = missing.first(MOST_NAMED).map(&:to_s)
        names << "#{missing.size - MOST_NAMED} more" if missing.size > MOST_NAMED
        "No figures of malloc, slots and GC from #{Text::Lines.list(names)}: require \"culet/agent\" there."
      end
    end
  end
end
