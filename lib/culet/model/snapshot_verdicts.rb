# frozen_string_literal: true

require_relative "../text/size"
require_relative "savings"
require_relative "snapshot_levels"

module Culet
  # One verdict: topic, sentence, and what to try (nil: nothing).
  Verdict = Struct.new(:topic, :text, :remedy, keyword_init: true)

  # The verdicts on the levels of a process.
  #
  # @api private
  class SnapshotVerdicts
    # @param memory [SnapshotLevels]
    def initialize(memory)
      @memory = memory
      @snapshot = memory.snapshot
      @remedies = Remedies.new([Setup.of(@snapshot)])
      @savings = Savings.new([Savings::Part.of(memory)], of: memory.rss_bytes)
    end

    # @return [Array<Verdict>] the largest level, the gain of `malloc_trim`, and advice
    def list = [dominant, trim, *advice].compact

    private

    attr_reader :memory, :snapshot

    def malloc = snapshot.malloc

    def bytes(count) = Text::Size.human(count)

    # @param names [Array<String>] of remedies
    # @return [Array<Remedy>] those that are not in place and are worth the change
    def worth(*names) = @savings.worth(@remedies.list(*names))

    def sentence(*names) = Remedies.sentence(worth(*names))

    def percent(count) = Text::Numbers.percent(count, memory.rss_bytes, digits: 0)

    def gain(count) = Gain.new(count, of: memory.rss_bytes)

    def dominant
      return verdict("size", "no memory is resident") if memory.rss_bytes.zero?

      name, most = memory.levels.max_by { |_, count| count }
      verdict("size", "the largest part is #{MEANINGS.fetch(name)}: #{bytes(most)} (#{percent(most)})")
    end

    # A level in a sentence.
    MEANINGS = {
      "ruby_objects" => "Ruby objects in their slots",
      "ruby_free_slots" => "free slots in Ruby's heap pages",
      "ruby_page_overhead" => "overhead of Ruby's heap pages",
      "ruby_transient" => "Ruby's transient heap (of young arrays and hashes, up to Ruby 3.1)",
      "ruby_unsplit" => "Ruby's heap, objects and free slots together",
      "malloc_used" => "malloc memory in use",
      "malloc_metadata" => "metadata of the allocator",
      "malloc_free" => "free memory kept by malloc",
      "malloc_unsplit" => "malloc memory, used and free together",
      "stacks" => "stacks of threads and fibers",
      "jit" => "compiled code",
      "libraries_and_files" => "libraries and mapped files",
      "other" => "memory that the program or its libraries mapped",
      "unexplained" => "unexplained"
    }.freeze
    private_constant :MEANINGS

    # culet trims by itself.
    def trim
      return unless snapshot.allocator.name == "glibc" && malloc

      now = gain(malloc.trim_bytes)
      remedy = @remedies["trim"]
      saved = @savings.gain(@savings.predict(remedy)) if remedy
      # The program takes a part of the free memory again.
      saves = "; trims would save about #{saved}" if saved && saved.verdict != now.verdict
      verdict("trim", "malloc_trim(0) would return #{now}#{saves}#{saved&.remark}", sentence("trim"))
    end

    def advice
      found = [stale, arenas || free_memory, free_slots, used, unsplit].compact
      found.empty? && sentence("trim").nil? ? [verdict("advice", nothing)] : found
    end

    def nothing
      return "the process is too small for any setting to matter" if memory.rss_bytes < Thresholds::SMALL_BYTES
      return "none: the free memory of this malloc is unknown" unless malloc && snapshot.allocator.blocks?

      "no setting would make the process much smaller: its memory is in use"
    end

    # Memory that changes while the process is read is counted twice or not at all.
    def stale
      return if memory.explained?

      kind = memory.unexplained_bytes.positive? ? "unexplained" : "counted twice"
      verdict("accuracy", "#{bytes(memory.unexplained_bytes.abs)} are #{kind}: the process " \
                          "changed while it was read", "culet report --stop #{snapshot.pid}")
    end

    def arenas
      return if worth("arenas").empty?

      verdict("arenas", "#{malloc.arenas} arenas keep #{gain(malloc.free_resident_bytes)} of free memory; " \
                        "fewer arenas keep less", sentence("allocator", "arenas"))
    end

    def free_memory
      kept = malloc && gain(malloc.free_resident_bytes)
      return unless kept&.worth?

      free = "#{kept} of malloc memory is free but resident#{kept.remark}"
      if snapshot.allocator.name == "culet"
        verdict("free memory", "#{free}; culet returns whole free pages within a second, " \
                               "the rest is between blocks in use")
      elsif malloc.trim_bytes >= malloc.free_resident_bytes / 2
        verdict("free memory", "#{free}; a trim would return most of it", sentence("trim", "allocator"))
      else
        verdict("free memory", "#{free}, between blocks in use", sentence("allocator"))
      end
    end

    def free_slots
      free = gain(memory.levels.fetch("ruby_free_slots"))
      return unless free.worth?

      text = "#{free} are free slots in pages that Ruby keeps#{free.remark}"
      if Setup.of(snapshot).warmed_up?
        text += "; Culet.warmup has run, so objects that were created since have left them"
      end
      verdict("Ruby's slots", text, sentence("collector", "compact"))
    end

    def used
      held = memory.levels.values_at("malloc_used", "ruby_objects").sum
      return unless held >= Thresholds::IN_USE_SHARE * memory.rss_bytes && memory.rss_bytes >= Thresholds::SMALL_BYTES

      verdict("in use", "#{bytes(held)} (#{percent(held)}) are in use; only the program can free them",
              "culet explain #{snapshot.pid} says whether they grow, and what to do")
    end

    def unsplit
      return unless gain(memory.levels.fetch("malloc_unsplit")).worth?

      why = snapshot.allocator.why.to_s
      why = why.empty? ? "the blocks of this allocator are unknown" : why.chomp(".")
      verdict("allocator", "#{why}; compare it with other allocators",
              "culet compare -- COMMAND")
    end

    def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
  end
end
