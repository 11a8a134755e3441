# frozen_string_literal: true

module Culet
  # The levels of a process's memory, from what its agent or its black box and the kernel count. They have the names of
  # the report's ledger and add up to the resident memory; the report, which reads the heap itself, knows more.
  #
  # @api private
  module Levels
    # Level and figure, in this order, after those of Ruby's heap.
    MALLOC = { "malloc_used" => "malloc_used_bytes", "malloc_metadata" => "malloc_metadata_bytes",
               "malloc_free" => "malloc_free_bytes" }.freeze
    private_constant :MALLOC

    module_function

    # @param resident [Integer] bytes
    # @param anonymous [Integer, nil] of them in anonymous memory, in bytes; nil: the process may not be read
    # @param figures [Hash{String => Integer}] of the agent or the black box
    # @return [Hash{String => Integer}, nil] level to bytes; nil: the process may not be read
    def call(resident, anonymous, figures)
      return unless anonymous

      rest = anonymous = anonymous.clamp(0, resident)
      levels = wanted(figures)
      # Each takes what the ones before it leave: free memory of malloc may have been returned.
      levels.each { |name, bytes| rest -= levels[name] = [bytes, rest].min }
      levels["libraries_and_files"] = resident - anonymous
      levels["unexplained"] = rest
      levels
    end

    def wanted(figures)
      pages = figures["ruby_page_bytes"]
      live = figures["live_slots"]
      slots = figures["slots"]
      found = {}
      if pages && live && slots&.positive?
        found["ruby_objects"] = pages * [live, slots].min / slots
        found["ruby_free_slots"] = pages - found["ruby_objects"]
      end
      MALLOC.each { |level, figure| figures[figure]&.then { |bytes| found[level] = bytes } }
      found
    end
    private_class_method :wanted
  end
end
