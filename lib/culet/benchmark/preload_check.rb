# frozen_string_literal: true

require_relative "../allocators"
require_relative "../system/elf"
require_relative "../system/processes"

module Culet
  module Benchmark
    # Checks in /proc/PID/maps that a process really uses the expected allocator. LD_PRELOAD has no effect on static and
    # setuid programs, nor where a program removes it from the environment; RUBYOPT has effect on Ruby only.
    class PreloadCheck
      # A malloc in the executable, which precedes preloaded libraries in symbol lookup.
      OWN = :own
      # About once a second, for programs that execute another program.
      REGULAR_CHECKS = 50
      # A short Ruby program loads culet/auto shortly before its end.
      EARLY_CHECKS = 100
      private_constant :OWN, :REGULAR_CHECKS, :EARLY_CHECKS

      def initialize(choice)
        @choice = choice
        @expected = choice.name
        @trims = choice.trim.on?
        @trimming = {}
        @checks = Hash.new(0)
        @programs = {}
        @mapped = {}
      end

      # Examines each process at its first, second, fourth, eighth ... call: often at the start, when libraries are
      # loaded. After an exec it starts anew.
      def examine(pids)
        pids.each do |pid|
          forget(pid) if executed_another?(pid)
          count = @checks[pid] += 1
          check(pid) if (count & (count - 1)).zero? || (count % REGULAR_CHECKS).zero? || trim_awaited?(pid, count)
        end
      end

      # @param pid [Integer, nil] the largest process of the run
      # @return [String, nil] why the run does not count; nil when the process used the expected allocator
      def failure(pid)
        names = @mapped[pid]
        return "it ended before its allocator could be checked" unless names
        return "its executable defines malloc, which LD_PRELOAD cannot replace" if names.include?(OWN)
        return other_allocator(names) unless @expected == "glibc" ? names.empty? : names.include?(@expected)

        "it did not load #{Allocators::Trim::FEATURE} although RUBYOPT requires it" if @trims && !@trimming[pid]
      end

      private

      def trim_awaited?(pid, count) = @trims && count < EARLY_CHECKS && !@trimming[pid]

      def other_allocator(names)
        return "it uses #{names.join(" and ")} instead of glibc's malloc" if @expected == "glibc"

        "#{@expected} was not loaded although LD_PRELOAD names it"
      end

      def check(pid)
        maps = File.read("/proc/#{pid}/maps", encoding: Encoding::UTF_8).scrub
        @trimming[pid] ||= Processes::Marks.trimming_in(maps)
        paths = maps.scan(%r{ (/\S*\.so[^/\s]*)}).flatten.uniq
        # Preloaded libraries are mapped before libc.
        return if paths.none? { |path| path.match?(%r{/libc[.-]}) }

        @mapped[pid] = paths.filter_map { |path| name_of(path) } | own_malloc(pid)
      rescue Elf::Invalid, *Processes::GONE_OR_FORBIDDEN
        nil # it has ended; an earlier result stands
      end

      # Another build of the expected allocator does not count.
      def name_of(path)
        return @expected if @choice.library?(path)

        name = Allocators.of_library(path)
        name unless name == @expected
      end

      def executed_another?(pid)
        program = File.readlink("/proc/#{pid}/exe")
        before = @programs[pid]
        @programs[pid] = program
        before && before != program
      rescue *Processes::GONE_OR_FORBIDDEN
        false
      end

      def forget(pid) = [@checks, @mapped, @trimming].each { |noted| noted.delete(pid) }

      def own_malloc(pid)
        @own_malloc ||= {}
        @own_malloc[@programs[pid]] ||= Elf.new("/proc/#{pid}/exe").defines?("malloc") ? [OWN] : []
      end
    end
  end
end
