# frozen_string_literal: true

module Culet
  module Live
    # The levels of a process's memory, from what its agent and the kernel count. They have the names of the report's
    # ledger and add up to the resident memory; the report, which reads the heap itself, knows more.
    module Levels
      module_function

      # @param memory [Hash{String => Integer}] of Member#memory
      # @param figures [Hash{String => Integer}] of the agent
      # @return [Hash{String => Integer}, nil] level to bytes; nil: the process may not be read
      def call(memory, figures)
        resident, anonymous = memory.values_at("rss_bytes", "anonymous_bytes")
        return unless anonymous

        rest = anonymous = anonymous.clamp(0, resident)
        levels = {}
        wanted(figures).each do |name, bytes|
          levels[name] = [bytes, rest].min
          rest -= levels[name]
        end
        levels.merge("libraries_and_files" => resident - anonymous, "unexplained" => rest)
      end

      # In this order each takes what the ones before it leave: free memory of malloc may have been returned.
      def wanted(figures)
        pages, live, slots = figures.values_at("ruby_page_bytes", "live_slots", "slots")
        found = {}
        if pages && live && slots&.positive?
          found["ruby_objects"] = pages * [live, slots].min / slots
          found["ruby_free_slots"] = pages - found["ruby_objects"]
        end
        %w[used metadata free].each { |part| found["malloc_#{part}"] = figures["malloc_#{part}_bytes"] }
        found.compact
      end
      private_class_method :wanted
    end
  end
end
