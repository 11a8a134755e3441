# frozen_string_literal: true

require "etc"
require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../scope"
require_relative "../savings"
require_relative "../statistics"
require_relative "breakdown"
require_relative "comparison"
require_relative "../agent/inquiry"

module Culet
  module Cow
    # One process of a process tree.
    #
    # age_seconds: since the fork; forked: whether it runs its parent's program at the same addresses, and so shares the
    # parent's memory; rss_bytes: nil where unknown; snapshot: nil for an unreadable process, with the reason in `why`.
    ForkedProcess = Struct.new(:pid, :parent_pid, :name, :age_seconds, :forked, :rss_bytes, :snapshot, :why,
                               keyword_init: true) do
      # @return [Breakdown, nil]
      attr_accessor :breakdown

      # @return [Writes, nil] writes to its unshared pages; nil without a comparison
      attr_accessor :writes

      # @return [Scope::Snapshot, nil] of the related process that it is compared with
      attr_accessor :relative

      # @return [Boolean] whether the process was readable
      def read? = !snapshot.nil?

      # @return [Integer, nil]
      def pss_bytes = snapshot&.process&.pss_bytes

      # @return [Integer, nil]
      def shared_bytes = snapshot&.process&.shared_bytes

      # @return [Integer, nil]
      def private_dirty_bytes = snapshot&.process&.private_dirty_bytes

      # @return [Array<Array(Integer, Integer)>] start and end of each range of unshared pages
      def unshared = PageSharing.new(snapshot, relative: relative).unshared

      # @return [Savings::Part]
      def part
        levels = breakdown.levels
        return Savings::Part.new(snapshot: snapshot, levels: levels.transform_values(&:resident)) unless forked

        Savings::Part.new(snapshot: snapshot, levels: levels.transform_values(&:private),
                          unshared: levels.transform_values(&:unshared), writes: writes)
      end

      # @return [Integer, nil] bytes of pages that only this process maps, dirty or clean
      def private_bytes = snapshot&.private_bytes
    end

    # Names of classes and the flag bits of old objects, from the agent in a process. Only parents are queried: children
    # have the same classes at the same addresses, and a worker that answers unshares pages.
    class ClassNames
      # @param pids [Array<Integer>] the trees' first processes
      # @raise [Culet::Error] without an agent or without its answer; the message gives reason and remedy
      def initialize(pids)
        @names = {}
        pids.each { |pid| query(pid) }
      end

      # @param address [Integer] of a class
      # @return [String, nil] nil for a class without a name or one created later
      def [](address) = @names[address]

      # @return [Integer] the bits of an object's first word that mark it as old; 0: unknown
      attr_reader :old_bits

      private

      def query(pid)
        answer = Agent::Inquiry.new(pid, data: false, classes: true).call.fact("classes")
        unless answer
          raise Error, "the agent in process #{pid} does not provide class names: " \
                       "it is another version of culet, or its Ruby's objects cannot be walked"
        end

        @old_bits = answer["old_bits"].to_i
        answer["names"].each { |address, name| @names[address] = name }
      end
    end

    # Snapshots of a process and all its descendants, taken two at a time while they run. A process that starts or
    # ends meanwhile may be missing.
    class ProcessTree
      # Processes read at a time. A reader may have real-time priority: a process is not to be paused for longer because
      # it waits for the processor.
      READERS = Etc.nprocessors.clamp(1, 2)
      private_constant :READERS

      # @return [Array<ForkedProcess>] parents before their children
      attr_reader :members

      # @return [Array<String>] sentences about processes that were not readable or have ended
      attr_reader :problems

      # @param pids [Array<String, Integer>] the roots; their descendants are added
      # @param writes [Integer] number of workers whose unshared pages are compared, those with the most unshared bytes
      #   first
      # @param classes [Boolean] whether to query the agents in the roots for class names
      # @param options [Hash] as for Scope::Reader
      # @param progress [Proc, nil] called with the number of the process and the number of all
      # @raise [Culet::UsageError] for a pid that is no process number
      # @raise [Culet::Error] for a process that does not exist; an unreadable process is a member without a snapshot
      def initialize(pids, writes: 0, classes: false, progress: nil, **options)
        @options = { chunks: (0 unless writes.positive?), **options }
        @problems = []
        roots = pids.map { |pid| Processes::Live.find(pid).pid }
        @names = class_names(roots) if classes
        read(roots.flat_map { |pid| Processes::Tree.new(pid).pids }.uniq, progress)
        raise Error, @problems.first || "process #{roots.first} ended while it was read" if @members.none?(&:rss_bytes)

        relate
        compare(writes)
      end

      # @return [Array<ForkedProcess>] the readable processes
      def read_members = members.select(&:read?)

      # @return [Array<ForkedProcess>] processes that share a parent's memory; a single process without children counts
      #   as one
      def workers
        forked = read_members.select(&:forked)
        forked.empty? && read_members.size == 1 ? read_members : forked
      end

      # @return [Integer, nil] bytes of all processes, shared pages counted once; nil where no process is readable
      def total_pss_bytes = (read_members.sum(&:pss_bytes) if read_members.any?)

      # @return [Integer] the sum of RSS, which counts shared pages in every process
      def total_rss_bytes = members.sum { |member| member.rss_bytes.to_i }

      # @return [Integer, nil] expected cost of one more worker: the median of private bytes; nil without workers
      def next_worker_bytes
        sizes = read_members.select(&:forked).map(&:private_bytes)
        Statistics.median(sizes) unless sizes.empty?
      end

      private

      # A reader rests as long as it pauses its process; another one reads meanwhile.
      def read(pids, progress)
        read = Array.new(pids.size)
        waiting = pids.each_with_index.to_a
        lock = Mutex.new
        readers = Array.new(READERS) do
          Thread.new do
            Thread.current.report_on_exception = false # `value` raises it
            while (pid, index = lock.synchronize { following(waiting, pids.size, progress) })
              read[index] = member(pid)
            end
          end
        end
        readers.each(&:value)
        @members = read.filter_map(&:first)
        @problems.concat(read.flat_map(&:last)).uniq!
      ensure
        readers&.each(&:kill)&.each(&:join)
      end

      # @return [Array(Integer, Integer), nil] the next process and its place
      def following(waiting, all, progress)
        pid, index = waiting.shift
        progress&.call(index + 1, all) if pid
        pid && [pid, index]
      end

      # Zombies have no memory.
      #
      # @return [Array(ForkedProcess, Array<String>)] nil for a process that has ended; problems of the reading
      def member(pid)
        parent = Processes::Cpu.parent(pid)
        return [nil, []] if parent.nil? || Processes::Cpu.state(pid) == "Z"

        found = ForkedProcess.new(pid: pid, parent_pid: parent, name: name(pid), forked: false,
                                  age_seconds: Processes::Cpu.age_seconds(pid),
                                  rss_bytes: Processes::Memory.rss_bytes(pid))
        [found, read_snapshot(found)]
      end

      # @return [Array<String>] problems of the reading
      def read_snapshot(member)
        member.snapshot = Scope::Reader.new(member.pid, **@options).snapshot
        member.rss_bytes = member.snapshot.process.rss_bytes
        member.snapshot.problems
      rescue Error => e
        member.why = e.message
        [e.message]
      end

      def name(pid) = Processes::Identity.new(pid).title

      # Compares each child with its parent, and a root with the first of its children.
      def relate
        by_pid = read_members.to_h { |member| [member.pid, member] }
        read_members.each do |member|
          parent = by_pid[member.parent_pid]
          member.forked = !parent.nil? && alike?(parent.snapshot, member.snapshot)
        end
        read_members.each do |member|
          member.relative = relative(member, by_pid)&.snapshot
          member.breakdown = Breakdown.new(member.snapshot, relative: member.relative)
        end
      end

      # Called before the snapshots, because an answer writes to pages.
      def class_names(pids)
        ClassNames.new(pids)
      rescue Error => e
        @problems << "class names are not available: #{e.message}"
        nil
      end

      # A process that has ended keeps the figures of its snapshot. Blocks are dropped afterwards: they are most of a
      # snapshot.
      def compare(most)
        read_members.select(&:forked).max_by(most) { |member| member.breakdown.total.unshared }.each do |member|
          member.writes = Comparison.new(member.snapshot, member.relative, names: @names).call
        rescue Error => e
          @problems << "the unshared pages of process #{member.pid} were not compared: #{e.message}"
        end
        read_members.each { |member| member.snapshot.regions.each { |region| region.chunks_payload = "" } }
      end

      def relative(member, by_pid)
        return by_pid[member.parent_pid] if member.forked

        read_members.find { |other| other.forked && other.parent_pid == member.pid }
      end

      # Whether both run the same program at the same addresses: after an exec the kernel chooses other addresses.
      def alike?(parent, child) = landmarks(parent) == landmarks(child)

      def landmarks(snapshot)
        stack = snapshot.mappings.find { |mapping| mapping.path == "[stack]" }
        program = snapshot.mappings.find { |mapping| mapping.path == snapshot.process.program }
        [snapshot.process.program, stack&.end, program&.start]
      end
    end
  end
end
