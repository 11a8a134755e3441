# frozen_string_literal: true

require_relative "../advice"
require_relative "../gain"
require_relative "growth"

module Culet
  class Diagnosis
    # What to change. name: of the remedy; text: what it does; line: what to write, and the file that it belongs in;
    # saves_bytes with its bounds: what that saves; cost: in CPU time; undo: how to take it back.
    Remedy = Struct.new(:name, :text, :line, :file, :saves_bytes, :low_bytes, :high_bytes, :cost, :undo,
                        keyword_init: true) do
      # @return [Hash{String => Object}] for JSON
      def document
        to_h.transform_keys(&:to_s).slice("name", "line", "file", "saves_bytes", "low_bytes", "high_bytes", "cost",
                                          "undo")
      end
    end

    # The remedies that help a process tree, those that save most first. One that is in place is not among them, nor is
    # one whose gain is too small (Gain).
    class Remedies
      # Server => what loads culet/auto in it, and the file.
      SERVERS = {
        "puma" => ["plugin :culet", "config/puma.rb"],
        "sidekiq" => ['require "culet/sidekiq"', "config/initializers/sidekiq.rb"],
        "pitchfork" => ['require "culet/pitchfork"', "config/pitchfork.rb"]
      }.freeze
      OTHERS = ['gem "culet", require: "culet/auto"', "Gemfile"].freeze
      ENVIRONMENT = "the unit file, Dockerfile or Procfile that starts the program"
      # What culet itself keeps of free memory and metadata, as a part of the memory in use: docs/benchmarks.md, the
      # workloads of threads and fragments.
      CULET_RESERVE = 0.06
      # Which part of the blocks that workers copied stays shared on culet, whose frees do not write into blocks.
      CULET_SHARED = 0.8
      # Which part of what a remedy could save it does save: expected, lowest, highest. Measured on the workloads of
      # culet compare and on Redmine (docs/decisions/explain.md).
      SHARES = { "allocator" => [1.0, 0.7, 1.15], "trim" => [0.85, 0.5, 1.0], "arenas" => [0.6, 0.3, 0.9],
                 "warmup" => [0.5, 0.2, 0.8], "preload" => [0.8, 0.5, 1.0], "compact" => [0.6, 0.3, 0.9],
                 "collector" => [0.7, 0.4, 1.0] }.freeze
      # Settings that make Ruby keep slots, or collect later.
      HEAP = /\ARUBY_GC_HEAP_(?:\w*INIT_SLOTS|FREE_SLOTS|GROWTH)/
      # A leak is counted as of so many minutes, and at most as so many times what is expected.
      LEAK_MINUTES = 60
      MOST_TIMES = 4
      PROGRAM = "the program"
      private_constant :OTHERS, :ENVIRONMENT, :CULET_RESERVE, :CULET_SHARED, :SHARES, :HEAP, :LEAK_MINUTES,
                       :MOST_TIMES, :PROGRAM

      # @param observation [Observation]
      # @param growth [Growth]
      # @param causes [Causes]
      def initialize(observation, growth:, causes:)
        @observation = observation
        @growth = growth
        @causes = causes
      end

      # @return [Array<Remedy>]
      def list
        found = [code, allocator, trim, arenas, warmup, preload, collector, compact, unused].compact
        leak, others = found.partition { |one| one.name == "code" }
        leak + joined(others).select { |one| worth?(one) }.sort_by { |one| -one.saves_bytes }
      end

      private

      # What one line does is one remedy. Its parts overlap, so that the least of it is the largest part alone.
      def joined(remedies)
        remedies.group_by { |one| [one.line, one.file] }.each_value.map do |same|
          next same.first if same.size == 1

          first = same.max_by(&:saves_bytes)
          first.dup.tap do |one|
            one.text = same.map(&:text).join(", and ")
            one.low_bytes = same.map(&:low_bytes).max
            one.saves_bytes, one.high_bytes = %i[saves_bytes high_bytes].map { |name| same.sum(&name) }
          end
        end
      end

      def worth?(remedy) = Gain.new(remedy.saves_bytes, of: @observation.total_bytes).worth?

      # @param bytes [Integer] what the remedy could save
      def remedy(name, bytes, text, line, file, cost:, undo:)
        return unless bytes.positive?

        value, low, high = SHARES.fetch(name, [1.0, 1.0, 1.0]).map { |share| (share * bytes).round }
        Remedy.new(name: name, text: text, line: line, file: file, saves_bytes: value, low_bytes: low, high_bytes: high,
                   cost: cost, undo: undo)
      end

      def members = @observation.members

      def snapshots = members.map(&:snapshot)

      def malloc = snapshots.map { |one| one.allocator.name }.tally.max_by(&:last)&.first

      def environments = @observation.settings.values.compact

      def loader = SERVERS.fetch(@observation.server, OTHERS)

      # What the program itself keeps more and more of.
      def code
        return unless @growth.leak?

        value, low, high = @growth.per_minute.map { |bytes| [bytes * LEAK_MINUTES, 0].max }
        text, line, file = culprit
        Remedy.new(name: "code", text: "#{text}; this is what it saves after an hour at the present load",
                   line: line, file: file, saves_bytes: value.round, low_bytes: low.round,
                   high_bytes: [high, MOST_TIMES * value].min.round, cost: "none", undo: "revert the change")
      end

      # @return [Array(String, String, String)] text, line, file
      def culprit
        keeper = @growth.holder&.keeper
        site = @growth.site&.name
        if keeper then ["release what #{keeper.title} keeps", keeper.name, keeper.place || site || PROGRAM]
        elsif site then ["release what this line allocates", site, site[/\A(.+):\d+\z/, 1] || PROGRAM]
        else ["find what is kept", search, "a terminal"]
        end
      end

      def search
        pid = @growth.process.pid
        @growth.verdict == :native ? "culet profile #{pid} --view growth" : "culet retain #{pid} --growth"
      end

      # What would be free on culet's allocator.
      def allocator
        return if malloc == "culet"

        free = @observation.private_bytes("malloc_free", "malloc_metadata")
        kept = CULET_RESERVE * @observation.private_bytes("malloc_used")
        copied = @observation.workers.sum { |worker| worker.breakdown.levels["malloc_used"]&.unshared.to_i }
        bytes = free - kept + (CULET_SHARED * copied)
        remedy("allocator", bytes.round, "use culet's allocator, which returns what is free",
               "culet run -- COMMAND", ENVIRONMENT, cost: "none, or a few percent less CPU", undo: "remove the prefix")
      end

      def trim
        gains = members.reject { |member| Advice.trims?(member.snapshot) }.filter_map { |member| trim_bytes(member) }
        line, file = loader
        remedy("trim", gains.sum, "return free memory after each major collection", line, file,
               cost: "about 0.1 % CPU", undo: "remove the line")
      end

      # Of memory that is shared with the parent, a trim of the parent returns it.
      def trim_bytes(member)
        gain = Advice.trim(member.snapshot) or return
        return gain.bytes unless member.forked

        free = member.breakdown.levels["malloc_free"] or return
        [gain.bytes, free.private].min
      end

      def arenas
        return if malloc != "glibc" || environments.any? { |one| limited?(one) }

        free = snapshots.select { |one| one.malloc && one.malloc.arenas > 2 }
                        .sum { |one| one.arenas.drop(2).sum(&:free_bytes) }
        remedy("arenas", free, "limit glibc to two arenas", "MALLOC_ARENA_MAX=2", ENVIRONMENT,
               cost: "threads wait for each other in malloc now and then", undo: "remove the variable")
      end

      def limited?(environment)
        environment.key?("MALLOC_ARENA_MAX") || environment["GLIBC_TUNABLES"].to_s.include?("arena_max")
      end

      def warmup
        return if @observation.workers.empty? || snapshots.any? { |one| Advice.warmed_up?(one) }

        lost = @observation.workers.sum do |worker|
          worker.breakdown.levels.values_at("ruby_objects", "ruby_free_slots", "malloc_used",
                                            "malloc_free").compact.sum(&:unshared)
        end
        line, file = puma? ? SERVERS["puma"] : ["Culet.warmup", "the code that runs before the fork"]
        remedy("warmup", lost, "collect and compact before the fork, so that workers write less to what they share",
               line, file, cost: "a second at boot", undo: "remove the line")
      end

      def preload
        never = @causes.all.find { |cause| cause.name == "sharing" && cause.sentence.start_with?("nothing") } or return

        line, file = if puma?
                       ["preload_app!",
                        "config/puma.rb"]
                     else
                       ["load the program before the fork", "the code that forks"]
                     end
        remedy("preload", never.bytes, "load the application once, before the fork", line, file,
               cost: "none; connections must be opened after the fork", undo: "remove the line")
      end

      def puma? = @observation.server == "puma"

      # Settings that keep free slots.
      def collector
        return if heap_settings.empty?

        remedy("collector", sparse, "let Ruby choose the size of its heap", "unset #{heap_settings.join(" ")}",
               ENVIRONMENT, cost: "a few more collections at boot", undo: "set the variables again")
      end

      def heap_settings = @heap_settings ||= environments.flat_map { |one| one.keys.grep(HEAP) }.uniq.sort

      def compact
        return if heap_settings.any? || snapshots.any? { |one| Advice.warmed_up?(one) }

        remedy("compact", sparse, "compact the heap when the program has booted", "Culet.warmup",
               puma? ? "config/puma.rb, by plugin :culet" : "the end of the program's boot",
               cost: "a second at boot", undo: "remove the line")
      end

      # Free slots beyond those that collections need.
      def sparse
        free, live = %w[ruby_free_slots ruby_objects].map { |name| @observation.private_bytes(name) }
        (free - (Causes::SLOT_RESERVE * live)).round
      end

      def unused
        cause = @causes.all.find { |one| one.name == "code" } or return

        remedy("unused", cause.bytes, "do not load what never runs", "require: false", "Gemfile",
               cost: "none", undo: "remove the option")
      end
    end
  end
end
