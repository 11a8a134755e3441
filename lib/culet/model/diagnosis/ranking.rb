# frozen_string_literal: true

require_relative "../remedies"
require_relative "../savings"
require_relative "growth"

module Culet
  class Diagnosis
    # The remedies for a process tree that are not in place, the largest saving first.
    class Ranking
      # The saving of a leak is its growth in this time; the upper bound is at most this multiple of the expectation.
      LEAK_MINUTES = 60
      MOST_TIMES = 4
      PROGRAM = "the program"
      FILE = /\A(.+):\d+\z/
      private_constant :FILE, :LEAK_MINUTES, :MOST_TIMES, :PROGRAM

      # @param observation [Observation]
      # @param growth [Growth]
      # @param causes [Causes]
      def initialize(observation, growth:, causes:)
        @observation = observation
        @growth = growth
        @causes = causes
        @savings = Savings.new(observation.parts, of: observation.total_bytes, watched: watched)
      end

      # @return [Array<Remedy>] remedies that are worth the change
      def list
        @list ||= begin
          worth = predicted.select { |one| @savings.gain(one).worth? }
          [*(@growth.leak? ? leaks : peak), *worth.sort_by { |one| -one.saves_bytes }]
        end
      end

      # @return [Array<String>] names of remedies whose saving is too small, or cannot be predicted
      def others = predicted.map(&:name) - list.map(&:name)

      private

      # @return [Hash{Reuse => Savings::Part}] with the memory of each process at the end, shared memory included
      def watched
        known = @observation.processes.select { |process| process.reuse.known? }
        snapshots = @observation.members.to_h { |member| [member.pid, member.snapshot] }
        known.select { |process| snapshots.key?(process.pid) }.to_h do |process|
          [process.reuse, Savings::Part.of(SnapshotLevels.new(snapshots.fetch(process.pid)))]
        end
      end

      def predicted
        @predicted ||= begin
          remedies = @observation.remedies.list(*Remedies::NAMES.select { |name| applies?(name) })
          @savings.predict_all(remedies, at_stake)
        end
      end

      def applies?(name)
        case name
        # The memory that workers have beyond their parent may be the leak.
        when "preload" then at_stake.key?(name) && !@growth.leak?
        when "unused" then at_stake.key?(name)
        when "growth" then @observation.inflated?
        else true
        end
      end

      # @return [Hash{String => Integer}] name => bytes of the cause that the remedy is for, where Savings does not know
      def at_stake
        all = @causes.all
        { "preload" => all.find(&:never_shared), "unused" => all.find { |one| one.name == "code" } }
          .compact.transform_values(&:bytes)
      end

      # Of a growth of unknown kind the watch predicts no saving.
      #
      # @return [Array<Remedy>] of what the program itself keeps more and more of
      def leaks
        return [] if @growth.verdict == :unclear
        return [leak(*culprit, @growth.per_minute)] if @growth.holders.empty?

        each = @growth.holders.map do |row|
          member = @growth.member(row)
          leak("release what #{row.keeps}#{@growth.origin(row)}", member || row.keeper.name,
               (row.keeper.place unless member) || PROGRAM, nil, @growth.per_minute([row]))
        end
        each.sort_by { |one| -one.saves_bytes }
      end

      def leak(text, line, file, undo, per_minute)
        value, low, high = per_minute.map { |bytes| [bytes * LEAK_MINUTES, 0].max }
        code("#{text}, which adds this in an hour at the present load", line, file, undo,
             value, low, [high, MOST_TIMES * value].min)
      end

      # @return [Array<Remedy>] of what the program itself needs now and then
      def peak
        work = @causes.work or return []
        place = @causes.work_origin&.place
        text, line, file, undo =
          if place then ["do in smaller pieces what this line does", place, place[FILE, 1] || PROGRAM]
          else search("find what the peaks are made of", "profile", "culet profile #{pid} --view peak --for 60s")
          end
        [code(text, line, file, undo, *parts(work))]
      end

      # Only the program's author can tell which part of a peak is not needed: the expectation is half of the peak.
      def parts(work) = [0.5, 0.0, 1.0].map { |part| part * work.bytes }

      def code(text, line, file, undo, value, low, high)
        Remedy.new(name: "code", text: text, line: line, file: file, saves_bytes: value.round, low_bytes: low.round,
                   high_bytes: high.round, cost: "none", undo: undo || "revert the change")
      end

      def pid = @growth.process.pid

      # @return [Array<String, nil>] text, line, file, and the way to undo the remedy; nil: revert the change
      def culprit
        site = @growth.site&.name
        if site
          ["release what this line allocates", site, site[FILE, 1] || PROGRAM, nil]
        elsif @growth.verdict == :native
          search("find what is kept", "profile", "culet profile #{pid} --view growth")
        else
          search("find what is kept", "agent", "culet retain #{pid} --growth")
        end
      end

      # A command that needs a part of culet in the process, or the way to load the part.
      def search(text, part, command)
        loaded = part == "agent" ? @observation.agent? : @observation.profile
        return [text, command, "a terminal", "nothing to undo"] if loaded

        ["load culet/#{part}, and ask again, to #{text}", "#{RubyOptions.advice(part)} COMMAND",
         "the shell command that starts the program", "remove it"]
      end
    end
  end
end
