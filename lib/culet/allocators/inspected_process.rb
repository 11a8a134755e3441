# frozen_string_literal: true

require_relative "../allocators"
require_relative "../system/elf"
require_relative "../system/foreign_file"
require_relative "../system/processes"
require_relative "search_order"

module Culet
  module Allocators
    # The process, with the facts that several checks use.
    class InspectedProcess
      # musl's one file is both loader and C library: ld-musl-x86_64.so.1, or libc.so in a directory of musl's.
      MUSL = %r{/ld-musl-[^/]*\z|-musl/libc\.so\z|/libc\.musl-[^/]*\z}

      attr_reader :live

      def initialize(live)
        @live = live
      end

      # @return [Integer]
      def pid = live.pid

      # @return [Array<Processes::Mapping>] as first read
      def mappings = @mappings ||= live.mappings

      # @return [Hash{String => String}] as at the start of the process; empty when unknown
      def environment = own_environment || {}

      # @return [Boolean] whether no title overwrote it
      def environment_known? = !own_environment.nil?

      # @return [String]
      def executable = @executable ||= live.executable

      # @return [Boolean] by the file's name, as the allocator itself judges it
      def ruby? = File.basename(executable).start_with?("ruby")

      # Ruby exports its version as text, from libruby or from the executable.
      #
      # @return [String, nil] such as "3.3.1"; nil for a program other than Ruby, or without permission
      def ruby_version
        return @ruby_version if defined?(@ruby_version)

        paths = mappings.select(&:file?).map(&:path).uniq.grep(%r{/libruby[^/]*\.so})
        @ruby_version = [*paths, executable].lazy.filter_map do |path|
          file = elf(path)
          symbol = file&.symbol("ruby_version")
          file.text_at(symbol) if symbol
        end.first
      end

      # @return [SearchOrder]
      def search_order = @search_order ||= SearchOrder.new(self)

      # @return [String, nil] "glibc", "musl", "jemalloc", "tcmalloc", "mimalloc", "rpmalloc", "culet"; nil: unknown
      def allocator
        return @allocator if defined?(@allocator)

        @allocator = name_of(search_order.serving)
      end

      # Whether libculet.so passes everything on to malloc of glibc. The rule is in allocator/src/program.c.
      #
      # @return [Boolean, nil] nil when the environment is unknown
      def dormant?
        return false if allocator != "culet" || ruby?
        return unless environment_known?

        environment["CULET_INHERITED"] == "1" && environment["CULET_CHILDREN"] != "all"
      end

      # @return [Hash{String => String}] /proc/PID/status
      def status = @status ||= live.status_fields

      # @return [Integer] cores it may run on
      def cores
        status["Cpus_allowed_list"].split(",").sum do |range|
          first, last = range.split("-").map(&:to_i)
          (last || first) - first + 1
        end
      end

      # @return [Integer] those of the program, without culet's
      def threads = status["Threads"].to_i - Dir["/proc/#{pid}/task/*/comm"].count { |path| own_thread?(path) }

      # @param path [String] as in the mappings
      # @return [Elf, nil] nil when the file is not an ELF file or cannot be opened
      def elf(path)
        @elves ||= {}
        return @elves[path] if @elves.key?(path)

        @elves[path] = read_elf(path)
      end

      # @return [Array<String>] mapped programs and libraries that cannot be opened: in another mount namespace, or on
      #   an unmounted file system; their symbols are unknown
      def unreadable
        @unreadable ||= mappings.select { |mapping| mapping.file? && mapping.executable? }.map(&:path).uniq
                                .select { |path| elf(path).nil? && !openable?(path) }
      end

      private

      def own_thread?(path)
        File.binread(path).start_with?("culet-")
      rescue SystemCallError
        false # it has ended
      end

      def own_environment
        return @own_environment if defined?(@own_environment)

        @own_environment = live.environment
      end

      def openable?(path)
        ForeignFile.open(opened(path), follow: true) { true }
      rescue SystemCallError, Error
        false
      end

      # By its symbols: a library under another name, or an allocator linked into the executable.
      def name_of(path)
        return unless path
        return Allocators.of_library(path) || elf(path)&.then { |elf| Allocators.of_elf(elf) } unless libc?(path)

        return "musl" if MUSL.match?(path)

        "glibc" if elf(path)&.defines?("gnu_get_libc_version")
      end

      def libc?(path) = File.basename(path).match?(/\A(libc[.-]|ld-musl-)/)

      def read_elf(path)
        file = opened(path)
        Elf.new(file) if Elf.file?(file)
      rescue Elf::Invalid, SystemCallError
        nil
      end

      # root can open a replaced file through map_files.
      def opened(path)
        mapping = mappings.find { |candidate| candidate.path == path }
        return live.file(path) unless mapping&.deleted?

        format("/proc/%<pid>d/map_files/%<first>x-%<past>x", pid: pid, first: mapping.first, past: mapping.past)
      end
    end
  end
end
