# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../scope"
require_relative "census"
require_relative "class_names"
require_relative "comparison"
require_relative "member"

module Culet
  module Cow
    # A process with all that it forked, and what these forked, as they are while they run. Whoever comes or goes meanwhile
    # is in it or not.
    class Family
      # @return [Array<Member>] each parent before its children
      attr_reader :members

      # @return [Array<String>] sentences on who could not be read, or ended meanwhile
      attr_reader :problems

      # @param pids [Array<String, Integer>] process numbers; their descendants are found
      # @param writes [Integer] of so many workers, those that stopped sharing most, what was written there is found out
      # @param classes [Boolean] whether the families' first processes are asked what their classes are called
      # @param options [Hash] how the processes are read, as for Scope::Reader
      # @param progress [Proc, nil] called with the number of processes read and of all
      # @raise [Culet::UsageError] when one is no process number
      # @raise [Culet::Error] when there is no such process; one that may not be read is a member with its resident bytes
      def initialize(pids, writes: 0, classes: false, progress: nil, **options)
        @options = { chunks: (0 unless writes.positive?), **options }
        @problems = []
        roots = pids.map { |pid| Processes::Live.find(pid).pid }
        @names = ask(roots) if classes
        read(roots.flat_map { |pid| Processes::Tree.new(pid).pids }.uniq, progress)
        raise Error, @problems.first || "process #{roots.first} ended while it was looked at" if @members.none?(&:rss_bytes)

        relate
        compare(writes)
      end

      # @return [Array<Member>] those that could be read
      def read_members = members.select(&:read?)

      # @return [Array<Member>] those that share a parent's memory; of a family of one, that one
      def workers
        forked = read_members.select(&:forked)
        forked.empty? && read_members.size == 1 ? read_members : forked
      end

      # @return [Integer, nil] bytes that all of them take: shared pages are counted once, by shares; nil where none of
      #   them can be read
      def total_pss_bytes = (read_members.sum(&:pss_bytes) if read_members.any?)

      # @return [Integer] what adding up the resident figures says, which counts a shared page in each
      def total_rss_bytes = members.sum { |member| member.rss_bytes.to_i }

      # @return [Integer, nil] bytes that one more worker would cost, as those that are there go: the median of what each
      #   has for itself; nil where nobody was forked
      def next_worker_bytes
        sizes = read_members.select(&:forked).map(&:private_bytes).sort
        sizes[(sizes.size - 1) / 2] unless sizes.empty?
      end

      private

      def read(pids, progress)
        @members = pids.each_with_index.filter_map do |pid, index|
          progress&.call(index + 1, pids.size)
          member(pid)
        end
      end

      # A zombie has no memory any more, and what has ended needs no place here.
      def member(pid)
        parent = Processes::Cpu.parent(pid)
        return if parent.nil? || Processes::Cpu.state(pid) == "Z"

        about = { pid: pid, parent_pid: parent, name: name(pid), age_seconds: Processes::Cpu.age_seconds(pid), forked: false,
                  rss_bytes: Processes::Memory.rss_bytes(pid) }
        Member.new(**about, **look(pid))
      end

      def name(pid) = Processes::Identity.new(pid).title

      def look(pid)
        snapshot = Scope::Reader.new(pid, **@options).snapshot
        @problems |= snapshot.problems
        { snapshot: snapshot, rss_bytes: snapshot.process.rss_bytes }
      rescue Error => e
        @problems << e.message
        { why: e.message }
      end

      # A child is compared with its parent, one without a parent here with the first of its children.
      def relate
        by_pid = read_members.to_h { |member| [member.pid, member] }
        read_members.each do |member|
          parent = by_pid[member.parent_pid]
          member.forked = !parent.nil? && alike?(parent.snapshot, member.snapshot)
        end
        read_members.each do |member|
          member.relative = relative(member, by_pid)&.snapshot
          member.census = Census.new(member.snapshot, relative: member.relative)
        end
      end

      # Before anything is read, since it writes to pages.
      def ask(pids)
        ClassNames.new(pids)
      rescue Error => e
        @problems << "classes are not named: #{e.message}"
        nil
      end

      # Who ends meanwhile is told with what was read of it before. The single blocks are not needed any more, and are most of
      # what a reading takes.
      def compare(most)
        read_members.select(&:forked).max_by(most) { |member| member.census.total.unshared }.each do |member|
          member.writes = Comparison.new(member.snapshot, member.relative, names: @names).call
        rescue Error => e
          @problems << "what was written to the pages of process #{member.pid} is not known: #{e.message}"
        end
        read_members.each { |member| member.snapshot.regions.each { |region| region.chunks_payload = "" } }
      end

      def relative(member, by_pid)
        return by_pid[member.parent_pid] if member.forked

        read_members.find { |other| other.forked && other.parent_pid == member.pid }
      end

      # The same program at the same addresses: a program that was executed after the fork has others, because the kernel
      # chooses them anew.
      def alike?(parent, child) = landmarks(parent) == landmarks(child)

      def landmarks(snapshot)
        stack = snapshot.mappings.find { |mapping| mapping.path == "[stack]" }
        program = snapshot.mappings.find { |mapping| mapping.path == snapshot.process.program }
        [snapshot.process.program, stack&.end, program&.start]
      end
    end
  end
end
