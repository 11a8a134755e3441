# frozen_string_literal: true

require_relative "../allocators"
require_relative "../../system/elf"
require_relative "../../system/processes"

module Culet
  module Compare
    # Sees to it that a contender really ran on its allocator: looks which
    # allocators' libraries a process has mapped. The environment proves nothing;
    # a preload is silently ignored by static and setuid programs, and by programs
    # that take it out of the environment of their children. Likewise for a
    # contender that is to trim: RUBYOPT means nothing to a program that is not Ruby.
    class Witness
      # Stands for a malloc inside the executable, which comes first in the loader's search order.
      OWN = :own
      # So that a program that starts itself anew is not missed: every so many samples, once a second or so.
      REGULAR_LOOKS = 50
      # Trims begin when Ruby loads its libraries, which in a short program is not long before its end.
      EAGER_LOOKS = 100
      private_constant :OWN, :REGULAR_LOOKS, :EAGER_LOOKS

      # @param choice [Allocators::Choice]
      def initialize(choice)
        @expected = choice.name
        @trims = choice.trim.on?
        @trimming = {}
        @looks = Hash.new(0)
        @programs = {}
        @mapped = {}
      end

      # Looks at each process at the first, second, fourth, eighth ... call after it became the program it is:
      # often at the start, when libraries are loaded, less often later; at each while a trim is still to be seen,
      # for some seconds. What a shell carried that has become another program since (exec) is forgotten.
      #
      # @param pids [Array<Integer>]
      def look(pids)
        pids.each do |pid|
          forget(pid) if became_another?(pid)
          count = @looks[pid] += 1
          note(pid) if (count & (count - 1)).zero? || (count % REGULAR_LOOKS).zero? || trim_awaited?(pid, count)
        end
      end

      # @param pid [Integer, nil] the process that the figures are mostly about
      # @return [String, nil] why its run does not count; nil when it ran on the expected allocator
      def objection(pid)
        names = @mapped[pid]
        return "it ended before anyone could see which allocator it runs on" unless names
        return "its executable brings a malloc of its own, which no preload replaces" if names.include?(OWN)
        return other_allocator(names) unless @expected == "glibc" ? names.empty? : names.include?(@expected)

        "nothing trims in it, although RUBYOPT names #{Allocators::Trim::FEATURE}" if @trims && !@trimming[pid]
      end

      # @param program [String] path of an executable
      # @return [String, nil] why no preload can work in it
      def self.obstacle(program)
        elf = Elf.new(program)
        return "#{program} is statically linked, so that LD_PRELOAD has no effect on it" if elf.static?
        return "#{program} is of another kind than this machine's libraries (32-bit?)" unless elf.same_kind?(Elf.new("/proc/self/exe"))

        "#{program} is setuid or setgid, so that LD_PRELOAD has no effect on it" if setid?(program)
      rescue Elf::Invalid, SystemCallError
        nil # a script, say: its interpreter is what counts, and what runs is looked at
      end

      def self.setid?(program) = File.stat(program).then { |stat| stat.setuid? || stat.setgid? }
      private_class_method :setid?

      private

      def trim_awaited?(pid, count) = @trims && count < EAGER_LOOKS && !@trimming[pid]

      def other_allocator(names)
        return "it runs on #{names.join(" and ")}, which it brings itself" if @expected == "glibc"

        "#{@expected} was not loaded into it although LD_PRELOAD names it"
      end

      def note(pid)
        maps = File.read("/proc/#{pid}/maps")
        @trimming[pid] ||= Processes::Trimming.in_maps(maps)
        paths = maps.scan(%r{ (/\S*\.so[^/\s]*)}).flatten.uniq
        # The loader maps what is preloaded before what is needed: with libc, all are there.
        return if paths.none? { |path| path.match?(%r{/libc[.-]}) }

        @mapped[pid] = paths.filter_map { |path| Allocators.of_library(path) } | own_malloc(pid)
      rescue Elf::Invalid, *Processes::GONE_OR_FORBIDDEN
        nil # it has ended; what was seen before stands
      end

      def became_another?(pid)
        program = File.readlink("/proc/#{pid}/exe")
        before = @programs[pid]
        @programs[pid] = program
        before && before != program
      rescue *Processes::GONE_OR_FORBIDDEN
        false
      end

      def forget(pid)
        [@looks, @mapped, @trimming].each { |noted| noted.delete(pid) }
      end

      def own_malloc(pid)
        @own_malloc ||= {}
        @own_malloc[@programs[pid]] ||= Elf.new("/proc/#{pid}/exe").defines?("malloc") ? [OWN] : []
      end
    end
  end
end
