# frozen_string_literal: true

require_relative "gain"
require_relative "../system/processes/trimming"
require_relative "../system/ruby_options"

module Culet
  # What may be tried, in the same words wherever it is advised, and what it would gain.
  module Advice
    AUTO = "#{RubyOptions.advice("auto")} in its environment"
    # What gives memory back while the program runs.
    TRIM = "#{AUTO} trims after each major collection (Puma: `plugin :culet`)"
    FEWER_ARENAS = "culet run -- COMMAND, or MALLOC_ARENA_MAX=2 in its environment"
    # "It" is the program.
    WARM_UP = "Culet.warmup when it has booted: it collects and compacts"

    module_function

    # @param snapshot [Scope::Snapshot]
    # @return [Gain, nil] what a trim would give back now, of what is resident; nil where that is not known, or culet's heap
    #   gives it back by itself
    def trim(snapshot)
      return unless snapshot.allocator.name == "glibc" && snapshot.malloc

      Gain.new(snapshot.malloc.trim_bytes, of: snapshot.process.rss_bytes)
    end

    # @param snapshot [Scope::Snapshot]
    # @return [Boolean] whether `culet/auto` is at work in it
    def trims?(snapshot) = snapshot.mappings.any? { |mapping| Processes::Trimming.in_maps(mapping.path.to_s) }
  end
end
