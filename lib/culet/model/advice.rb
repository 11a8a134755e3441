# frozen_string_literal: true

require_relative "gain"
require_relative "../system/processes/marks"
require_relative "../system/ruby_options"

module Culet
  # One verdict: topic, sentence, and what to try (nil: nothing).
  Verdict = Struct.new(:topic, :text, :remedy, keyword_init: true)

  # Advice that several tools give, and its gain.
  #
  # @api private
  module Advice
    # How to load culet/auto.
    AUTO = "#{RubyOptions.advice("auto")} in its environment".freeze
    # Returns memory while the program runs.
    TRIM = "#{AUTO} trims after each major GC (Puma: `plugin :culet`)".freeze
    # Limits the arenas of glibc.
    FEWER_ARENAS = "culet run -- COMMAND, or MALLOC_ARENA_MAX=2 in its environment"
    # Prepares the heap for forking.
    WARM_UP = "Culet.warmup at the end of boot collects and compacts"
    # Who holds memory in use.
    TRACE = "culet trace -- COMMAND, then culet replay, shows its allocations over time"

    module_function

    # @param snapshot [Scope::Snapshot]
    # @return [Gain, nil] resident bytes that a trim would return now; nil where that is unknown, and for culet, which
    #   trims by itself
    def trim(snapshot)
      return unless snapshot.allocator.name == "glibc" && snapshot.malloc

      Gain.new(snapshot.malloc.trim_bytes, of: snapshot.process.rss_bytes)
    end

    # @param snapshot [Scope::Snapshot]
    # @return [Boolean] whether the process has loaded `culet/auto`
    def trims?(snapshot) = snapshot.mappings.any? { |mapping| Processes::Marks.trimming_in(mapping.path.to_s) }

    # @param snapshot [Scope::Snapshot]
    # @return [Boolean] whether Culet.warmup has run in the process, or in one that it was forked from
    def warmed_up?(snapshot) = marked?(snapshot, Processes::Marks::WARMUP)

    # @param snapshot [Scope::Snapshot]
    # @return [String] how to find what holds the memory in use: by the profile that the process carries, or by a trace
    def holders(snapshot)
      return TRACE unless marked?(snapshot, Processes::Marks::PROFILE)

      "culet profile #{snapshot.pid} shows the code that holds it"
    end

    def marked?(snapshot, name) = snapshot.mappings.any? { |mapping| mapping.path.to_s.start_with?(name) }
    private_class_method :marked?
  end
end
