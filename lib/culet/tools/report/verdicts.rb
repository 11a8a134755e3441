# frozen_string_literal: true

require_relative "../advice"
require_relative "../../text/size"
require_relative "ledger"

module Culet
  module Report
    # One thing to know: a sentence, and what is worth trying (nil when nothing is to be done).
    Verdict = Struct.new(:topic, :text, :remedy, keyword_init: true)

    # What a ledger means, in words.
    class Verdicts
      # A smaller process is hardly more than Ruby itself.
      SMALL_BYTES = 16_000_000
      # From this share on, what is in use decides.
      IN_USE_SHARE = 0.7
      # glibc gives a program with one thread one arena, Ruby's timer thread sometimes another.
      FEW_ARENAS = 2
      MAIN_ARENA = "main"
      # Topics of advice to change a setting, with a gain that is known.
      CHANGES = ["trim", "arenas", "free memory", "Ruby's slots"].freeze
      private_constant :SMALL_BYTES, :IN_USE_SHARE, :FEW_ARENAS, :MAIN_ARENA, :CHANGES


      # @param ledger [Ledger]
      def initialize(ledger)
        @ledger = ledger
        @snapshot = ledger.snapshot
      end

      # @return [Array<Verdict>] what dominates first, then what `malloc_trim` would return, then what is worth trying
      def list
        [dominant, trim, *advice].compact
      end

      # @return [Array<Verdict>] those of them that advise a change of settings
      def changes = list.select { |one| one.remedy && CHANGES.include?(one.topic) }

      private

      attr_reader :ledger, :snapshot

      def glibc? = snapshot.allocator.name == "glibc"

      def malloc = snapshot.malloc

      def bytes(count) = Text::Size.human(count)

      def trims? = Advice.trims?(snapshot)

      def percent(count) = ledger.rss_bytes.zero? ? "0 %" : "#{(100 * count.fdiv(ledger.rss_bytes)).round} %"

      def gain(count) = Gain.new(count, of: ledger.rss_bytes)

      def dominant
        return verdict("size", "nothing of it is resident") if ledger.rss_bytes.zero?

        name, most = ledger.levels.max_by { |_, count| count }
        verdict("size", "most of it, #{bytes(most)} (#{percent(most)}), is #{MEANINGS.fetch(name)}")
      end

      # What a level is, as the end of a sentence.
      MEANINGS = {
        "ruby_objects" => "Ruby objects in their slots",
        "ruby_free_slots" => "free slots in Ruby's heap pages",
        "ruby_page_overhead" => "what Ruby's heap pages need beside their slots",
        "ruby_transient" => "what Ruby keeps for young arrays and hashes (its transient heap, up to Ruby 3.1)",
        "ruby_unsplit" => "Ruby's heap, whose objects could not be told apart",
        "malloc_used" => "what the program holds from malloc",
        "malloc_metadata" => "the allocator's own bookkeeping",
        "malloc_free" => "free memory that malloc keeps",
        "malloc_unsplit" => "malloc's, used or free: from outside these cannot be told apart here",
        "stacks" => "stacks of threads and fibers",
        "jit" => "compiled code",
        "libraries_and_files" => "libraries and mapped files",
        "other" => "memory that the program or its libraries mapped for themselves",
        "unexplained" => "not explained"
      }.freeze
      private_constant :MEANINGS

      def trim
        gain = Advice.trim(snapshot) or return

        verdict("trim", "malloc_trim(0) would give back #{gain}#{gain.remark}", (Advice::TRIM if gain.worth? && !trims?))
      end

      def advice
        found = [stale, arenas || free_memory, free_slots, used, unsplit].compact
        found.empty? && trim&.remedy.nil? ? [verdict("advice", nothing)] : found
      end

      def nothing
        return "it is too small for any setting to matter" if ledger.rss_bytes < SMALL_BYTES
        return "what malloc keeps for itself is not known here, so there is nothing to advise" unless malloc && snapshot.allocator.blocks?

        "no setting would make it much smaller: what it holds is in use"
      end

      # A walk beside a running program counts what moves meanwhile twice or not at all.
      def stale
        return if ledger.explained?

        verdict("exactness", "#{bytes(ledger.unexplained_bytes.abs)} are #{ledger.unexplained_bytes.positive? ? "unexplained" : "counted twice"}: the process " \
                             "changed while it was read", "culet report --stop #{snapshot.pid}")
      end

      def arenas
        return unless glibc? && malloc && malloc.arenas > FEW_ARENAS && apart?

        free = gain(malloc.free_resident_bytes)
        return unless free.worth?

        verdict("arenas", "#{malloc.arenas} arenas keep #{free} that is free, most of it in threads' arenas; one heap for all threads keeps less#{free.remark}",
                Advice::FEWER_ARENAS)
      end

      # Whether most of what is free lies in threads' arenas: fewer arenas do not help against holes in the main one.
      def apart?
        main, others = snapshot.arenas.partition { |arena| arena.name == MAIN_ARENA }
        others.sum(&:free_bytes) > main.sum(&:free_bytes)
      end

      def free_memory
        kept = malloc && gain(malloc.free_resident_bytes)
        return unless kept&.worth?

        free = "#{kept} of malloc's memory is free and still resident#{kept.remark}"
        if snapshot.allocator.name == "culet"
          verdict("free memory", "#{free}: what stays free goes back within a second, the rest lies between blocks in use")
        elsif malloc.trim_bytes >= malloc.free_resident_bytes / 2
          verdict("free memory", "#{free}, and most of it would go back if asked", "#{"#{Advice::AUTO}, or " unless trims?}culet run -- COMMAND")
        else
          verdict("free memory", "#{free}, scattered between blocks in use", "culet run -- COMMAND")
        end
      end

      def free_slots
        free = gain(ledger.levels.fetch("ruby_free_slots"))
        return unless free.worth?

        verdict("Ruby's slots", "#{free} are slots without an object, in pages that others keep#{free.remark}", Advice::WARM_UP)
      end

      def used
        held = ledger.levels.values_at("malloc_used", "ruby_objects").sum
        return unless held >= IN_USE_SHARE * ledger.rss_bytes && ledger.rss_bytes >= SMALL_BYTES

        verdict("in use", "#{bytes(held)} (#{percent(held)}) are in use: only a program that holds less becomes smaller",
                "culet trace -- COMMAND, then culet replay, shows when it asks for how much")
      end

      def unsplit
        return unless gain(ledger.levels.fetch("malloc_unsplit")).worth?

        verdict("allocator", "#{snapshot.allocator.why.to_s.empty? ? "the blocks of this allocator are not known" : snapshot.allocator.why.chomp(".")}; what another would need, a comparison shows",
                "culet compare -- COMMAND")
      end

      def verdict(topic, text, remedy = nil) = Verdict.new(topic: topic, text: text, remedy: remedy)
    end
  end
end
