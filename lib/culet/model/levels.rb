# frozen_string_literal: true

module Culet
  # The levels of a process's memory: what its resident bytes are used for. Whoever shows them has their names, their
  # titles and their sum from here.
  #
  # @api private
  module Levels
    # Name => title, in the order of tables.
    TITLES = {
      "ruby_objects" => "Ruby objects",
      "ruby_free_slots" => "Ruby: free slots",
      "ruby_page_overhead" => "Ruby: page overhead",
      "ruby_transient" => "Ruby: transient heap",
      "ruby_unsplit" => "Ruby: objects and free slots",
      "malloc_used" => "malloc: in use, resident",
      "malloc_metadata" => "malloc: metadata",
      "malloc_free" => "malloc: free, resident",
      "malloc_unsplit" => "malloc: used and free",
      "stacks" => "stacks",
      "jit" => "JIT code",
      "libraries_and_files" => "libraries and files",
      "other" => "other memory",
      "unexplained" => "unexplained"
    }.freeze

    # Levels that counters tell apart, without a look at the heap.
    COUNTED = %w[ruby_objects ruby_free_slots malloc_used malloc_metadata malloc_free libraries_and_files other].freeze
    # Level and counter.
    MALLOC = { "malloc_used" => "malloc_used_bytes", "malloc_metadata" => "malloc_metadata_bytes",
               "malloc_free" => "malloc_free_bytes" }.freeze
    private_constant :MALLOC

    module_function

    # The levels of a process whose heap was read. What no part explains, or what two of them have, is the level
    # `unexplained`, which may be negative.
    #
    # @param resident [Integer] bytes
    # @param parts [Hash{String => Integer}] level to bytes
    # @return [Hash{String => Integer}] every level; they add up to the resident bytes
    def complete(resident, parts)
      levels = TITLES.to_h { |name, _| [name, parts.fetch(name, 0)] }
      levels["unexplained"] = resident - parts.values.sum
      levels.freeze
    end

    # The levels as far as counters tell: those of the kernel, of Ruby and of malloc, of about one time. `other` has
    # what they do not count: stacks, JIT code, memory that libraries map, and blocks since malloc's last count.
    #
    # @param resident [Integer] bytes, of statm in /proc
    # @param files [Integer] of them in files and shared memory, of statm
    # @param counters [#[]] by name: ruby_page_bytes, live_slots, slots, malloc_used_bytes, malloc_metadata_bytes,
    #   malloc_free_bytes; nil: not known
    # @return [Hash{String => Integer}] those of COUNTED that are known; they add up to the resident bytes
    def counted(resident, files, counters)
      files = files.clamp(0, resident)
      rest = resident - files
      levels = parts(counters)
      # Each takes what the ones before it leave: free memory of malloc may have been returned.
      levels.each { |name, bytes| rest -= levels[name] = bytes.clamp(0, rest) }
      levels["libraries_and_files"] = files
      levels["other"] = rest
      levels
    end

    # Ruby's pages are divided by the number of slots: sizes differ, but no counter says how many of each are live.
    def parts(counters)
      pages = counters["ruby_page_bytes"]
      live = counters["live_slots"]
      slots = counters["slots"]
      found = {}
      if pages && live && slots&.positive?
        found["ruby_objects"] = pages * [live, slots].min / slots
        found["ruby_free_slots"] = pages - found["ruby_objects"]
      end
      MALLOC.each { |level, counter| counters[counter]&.then { |bytes| found[level] = bytes } }
      found
    end
    private_class_method :parts
  end
end
