# frozen_string_literal: true

require_relative "../remedies"
require_relative "../savings"
require_relative "growth"

module Culet
  class Diagnosis
    # The remedies that help a process tree, those that save most first. One that is in place is not among them.
    class Ranking
      # A leak is counted as of so many minutes, and at most as so many times what is expected.
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

      # @return [Array<Remedy>] those that are worth the change
      def list
        @list ||= begin
          worth = predicted.select { |one| @savings.gain(one).worth? }
          [*(@growth.leak? ? leaks : peak), *worth.sort_by { |one| -one.saves_bytes }]
        end
      end

      # @return [Array<String>] names of those that would save too little, or that nobody can predict
      def others = predicted.map(&:name) - list.map(&:name)

      private

      # @return [Hash{Reuse => Savings::Part}] each with the process at the end, what it shares included
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
        # What workers have beyond their parent may be what leaks.
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

      # @return [Array<Remedy>] of what the program itself keeps more and more of
      def leaks
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

      # Of a peak, which part is not needed is for the program to tell.
      def parts(work) = [0.5, 0.0, 1.0].map { |part| part * work.bytes }

      def code(text, line, file, undo, value, low, high)
        Remedy.new(name: "code", text: text, line: line, file: file, saves_bytes: value.round, low_bytes: low.round,
                   high_bytes: high.round, cost: "none", undo: undo || "revert the change")
      end

      def pid = @growth.process.pid

      # @return [Array<String>] text, line, file, and how to undo it where nothing is reverted
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

      # A command that needs a part of culet in the process; without that, how to load it.
      def search(text, part, command)
        loaded = part == "agent" ? @observation.agent? : @observation.profile
        return [text, command, "a terminal", "nothing to undo"] if loaded

        ["load culet/#{part}, and ask again, to #{text}", "#{RubyOptions.advice(part)} COMMAND",
         "the shell command that starts the program", "remove it"]
      end
    end
  end
end
