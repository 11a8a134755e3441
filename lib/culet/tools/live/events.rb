# frozen_string_literal: true

module Culet
  module Live
    # What happened between two moments: processes that came and went, major collections, trims, steps of the limit.
    class Events
      # A process that gets the title of one that ended so many seconds ago replaces it.
      RESTART_SECONDS = 60
      COUNTED = { "major_gcs" => ["major_gc", "major collection"], "trims" => %w[trim trim] }.freeze
      private_constant :RESTART_SECONDS, :COUNTED

      def initialize
        @known = {}.compare_by_identity  # by member: when it was seen first; 0: at the first call
        @ended = {}                      # by title: when each process ended that nothing has replaced
        @young = {}.compare_by_identity  # members that may replace one
        @counts = {}.compare_by_identity # by member: the last figures
      end

      # @param at [Float] seconds since 1970
      # @param members [Array<Member>] the processes that live
      # @param gone [Array<Member>] those that have ended since the last call
      # @param steps [Array<Hash{String => Object}>] of Limits#take_steps
      # @return [Array<Hash{String => Object}>] "at", "pid", "kind", "text", "bytes"
      def call(at, members, gone:, steps:)
        found = ended(at, gone) + started(at, members) + counted(at, members)
        found + steps.map { |step| event(step["at"], step["pid"], "limit", step["step"], step["freed_bytes"]) }
      end

      private

      def event(at, pid, kind, text, bytes = nil)
        { "at" => at, "pid" => pid, "kind" => kind, "text" => text, "bytes" => bytes }
      end

      def ended(at, gone)
        gone.map do |member|
          (@ended[member.title] ||= []) << at
          [@known, @young, @counts].each { |all| all.delete(member) }
          event(at, member.pid, "exit", member.title)
        end
      end

      # None of the first call has just started.
      def started(at, members)
        first = @known.empty?
        fresh = members.reject { |member| @known.key?(member) }
        fresh.each { |member| @known[member] = first ? 0 : at }
        return [] if first

        fresh.each { |member| @young[member] = true }
        fresh.map { |member| event(at, member.pid, "fork", member.title) } + replacements(at)
      end

      # Workers that set no title all have the same one, so each process replaces one other at most, the youngest first.
      def replacements(at)
        @ended.each_value { |times| times.reject! { |time| time < at - RESTART_SECONDS } }
        @ended.delete_if { |_, times| times.empty? }
        @young.select! { |member, _| @known[member] >= at - RESTART_SECONDS }
        return [] if @ended.empty?

        found = @young.keys.reverse.select { |member| @ended[member.title]&.shift }
        found.each { |member| @young.delete(member) }
        found.map { |member| event(at, member.pid, "restart", member.title) }
      end

      def counted(at, members)
        members.flat_map do |member|
          now = member.figures.last or next []
          before = @counts[member]
          next [] if now.equal?(before)

          @counts[member] = now
          before ? increases(at, member.pid, before, now) : []
        end
      end

      def increases(at, pid, before, now)
        COUNTED.filter_map do |figure, (kind, text)|
          number = now.fetch(figure, 0) - before.fetch(figure, 0)
          next unless number.positive?

          bytes = now["trim_returned_bytes"] - before["trim_returned_bytes"] if kind == "trim"
          event(at, pid, kind, number == 1 ? text : "#{number} #{text}s", bytes)
        end
      end
    end
  end
end
