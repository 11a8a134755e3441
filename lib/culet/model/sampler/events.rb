# frozen_string_literal: true

module Culet
  module Live
    # Events between two moments: starts and ends of processes, major collections, trims, steps of the limit.
    class Events
      # A process that gets the title of one that ended so many seconds ago replaces it.
      RESTART_SECONDS = 60
      COUNTED = { "major_gcs" => ["major_gc", "major collection"], "trims" => %w[trim trim] }.freeze
      private_constant :RESTART_SECONDS, :COUNTED

      def initialize
        @known = {}.compare_by_identity  # by process: when it was seen first; 0: at the first call
        @ended = {}                      # by title: when each process ended that nothing has replaced
        @young = {}.compare_by_identity  # processes that may replace one
        @counts = {}.compare_by_identity # by process: the last figures
      end

      # @param at [Float] seconds since 1970
      # @param processes [Array<WatchedProcess>] the processes that live
      # @param gone [Array<WatchedProcess>] those that have ended since the last call
      # @param steps [Array<Hash{String => Object}>] of Limits#take_steps
      # @return [Array<Hash{String => Object}>] "at", "pid", "kind", "text", "bytes"
      def call(at, processes, gone:, steps:)
        found = ended(at, gone) + started(at, processes) + counted(at, processes)
        found + steps.map { |step| event(step["at"], step["pid"], "limit", step["step"], step["freed_bytes"]) }
      end

      private

      def event(at, pid, kind, text, bytes = nil)
        { "at" => at, "pid" => pid, "kind" => kind, "text" => text, "bytes" => bytes }
      end

      def ended(at, gone)
        gone.map do |process|
          (@ended[process.title] ||= []) << at
          [@known, @young, @counts].each { |all| all.delete(process) }
          event(at, process.pid, "exit", process.title)
        end
      end

      # Processes of the first call count as started earlier.
      def started(at, processes)
        first = @known.empty?
        fresh = processes.reject { |process| @known.key?(process) }
        fresh.each { |process| @known[process] = first ? 0 : at }
        return [] if first

        fresh.each { |process| @young[process] = true }
        fresh.map { |process| event(at, process.pid, "fork", process.title) } + replacements(at)
      end

      # Workers that set no title all have the same one, so each process replaces one other at most, the youngest first.
      def replacements(at)
        @ended.each_value { |times| times.reject! { |time| time < at - RESTART_SECONDS } }
        @ended.delete_if { |_, times| times.empty? }
        @young.select! { |process, _| @known[process] >= at - RESTART_SECONDS }
        return [] if @ended.empty?

        found = @young.keys.reverse.select { |process| @ended[process.title]&.shift }
        found.each { |process| @young.delete(process) }
        found.map { |process| event(at, process.pid, "restart", process.title) }
      end

      def counted(at, processes)
        processes.flat_map do |process|
          now = process.counters or next []
          before = @counts[process]
          next [] if now.equal?(before)

          @counts[process] = now
          before ? increases(at, process.pid, before, now) : []
        end
      end

      def increases(at, pid, before, now)
        COUNTED.filter_map do |figure, (kind, text)|
          number = increase(figure, before, now)
          next unless number.positive?

          bytes = increase("trim_returned_bytes", before, now) if kind == "trim"
          event(at, pid, kind, number == 1 ? text : "#{number} #{text}s", bytes)
        end
      end

      # An agent leaves out what it does not know.
      def increase(figure, before, now) = now.fetch(figure, 0) - before.fetch(figure, 0)
    end
  end
end
