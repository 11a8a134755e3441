# frozen_string_literal: true

require_relative "../allocators"
require_relative "../../system/elf"
require_relative "../../system/processes"
require_relative "search_order"

module Culet
  class Doctor
    # The process looked at, with what several checks ask for.
    class Target
      attr_reader :live

      # @param live [Processes::Live]
      def initialize(live)
        @live = live
      end

      def pid = live.pid

      # @return [Array<Processes::Mapping>] as they were when first asked for
      def mappings = @mappings ||= live.mappings

      # @return [Hash{String => String}] as the process was started; empty when it is not known
      def environment = @environment ||= environment_known? ? live.environment : {}

      # A process that sets a long title (as Puma and Sidekiq do) writes it over its first environment, which is what
      # /proc shows.
      #
      # @return [Boolean]
      def environment_known?
        return @environment_known if defined?(@environment_known)

        text = live.read("environ")
        @environment_known = text.empty? || text.match?(/\A[^=\s\0]+=/)
      end

      # @return [String]
      def executable = @executable ||= live.executable

      # @return [Boolean] by the file's name, as the allocator itself judges it
      def ruby? = File.basename(executable).start_with?("ruby")

      # @return [SearchOrder]
      def search_order = @search_order ||= SearchOrder.new(self)

      # @return [String, nil] "glibc", "jemalloc", "tcmalloc", "mimalloc", "rpmalloc", "culet"; nil for one that culet does not know
      def allocator
        return @allocator if defined?(@allocator)

        @allocator = name_of(search_order.serving)
      end

      # Whether libculet.so serves this process or passes everything on to glibc's malloc. The rule is that of
      # allocator/src/program.c.
      #
      # @return [Boolean, nil] nil when the environment is not known
      def dormant?
        return false if allocator != "culet" || ruby?
        return unless environment_known?

        environment["CULET_INHERITED"] == "1" && environment["CULET_CHILDREN"] != "all"
      end

      # @return [Hash{String => String}] /proc/PID/status
      def status = @status ||= live.status_fields

      # @return [Integer] cores it may run on
      def cores = status["Cpus_allowed_list"].split(",").sum { |range| range.split("-").map(&:to_i).then { |a, b| (b || a) - a + 1 } }

      # @return [Integer]
      def threads = status["Threads"].to_i

      # @param path [String] as in the mappings
      # @return [Elf, nil] nil when the file is no ELF file or cannot be opened from here
      def elf(path)
        @elves ||= {}
        return @elves[path] if @elves.key?(path)

        @elves[path] = read_elf(path)
      end

      # @return [Array<String>] mapped programs and libraries that cannot be opened from here: of another mount namespace, or
      #   of a file system that is gone. What they define is unknown.
      def unreadable
        @unreadable ||= mappings.select { |mapping| mapping.file? && mapping.executable? }.map(&:path).uniq.select { |path| elf(path).nil? && !openable?(path) }
      end

      private

      def openable?(path)
        File.open(opened(path), "rb") { true }
      rescue SystemCallError
        false
      end

      def name_of(path)
        return unless path
        return Allocators.of_library(path) || by_symbol(path) unless libc?(path)

        "glibc" if elf(path)&.defines?("gnu_get_libc_version")
      end

      # A library under another name, or an allocator linked into the executable.
      def by_symbol(path)
        { "culet_version" => "culet", "mi_version" => "mimalloc", "tc_version" => "tcmalloc", "mallctl" => "jemalloc",
          "rpmalloc_global_statistics" => "rpmalloc" }
          .find { |symbol, _| elf(path)&.defines?(symbol) }&.last
      end

      def libc?(path) = File.basename(path).match?(/\Alibc[.-]/)

      def read_elf(path)
        file = opened(path)
        Elf.new(file) if Elf.file?(file)
      rescue Elf::Invalid, SystemCallError
        nil
      end

      # A file that was replaced since is still there behind map_files, for root.
      def opened(path)
        mapping = mappings.find { |candidate| candidate.path == path }
        return live.file(path) unless mapping&.deleted?

        format("/proc/%<pid>d/map_files/%<first>x-%<past>x", pid: pid, first: mapping.first, past: mapping.past)
      end
    end
  end
end
