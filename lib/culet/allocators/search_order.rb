# frozen_string_literal: true

require_relative "../system/foreign_file"

module Culet
  module Allocators
    # The file in which the loader finds `malloc` of a process.
    #
    # The order is ld.so's: the executable, /etc/ld.so.preload and LD_PRELOAD,
    # then the libraries these need, breadth first. Libraries opened with dlopen
    # do not count.
    class SearchOrder
      # Of /etc/ld.so.preload.
      MOST_BYTES = 64 << 10
      private_constant :MOST_BYTES

      # @param target [InspectedProcess]
      def initialize(target)
        @target = target
      end

      # @return [String, nil] path of the mapped file whose malloc serves the process
      def serving
        @serving ||= order.find { |path| defines_malloc?(path) } || defining.find { |path| libc?(path) }
      end

      # @return [Array<String>] paths of all mapped files that define malloc
      def defining = @defining ||= files.select { |path| defines_malloc?(path) }

      # @return [Array<String>] entries of LD_PRELOAD and /etc/ld.so.preload
      def preloads
        @preloads ||= begin
          words = system_wide.b.gsub(/#.*/n, "").split(/[\s:]+/n)
          (@target.environment["LD_PRELOAD"].to_s.split(/[\s:]+/) + words).reject(&:empty?)
        end
      end

      # @param name [String] a soname or path as the loader gets it
      # @return [String, nil] the path it is mapped under
      def mapped(name)
        base = File.basename(name)
        files.find { |path| path.delete_suffix(" (deleted)") == name } ||
          files.find { |path| File.basename(path.delete_suffix(" (deleted)")) == base } ||
          files.find { |path| @target.elf(path)&.soname == base } ||
          (files.find { |path| same?(path, name) } if name.include?("/"))
      end

      # @return [Array<String>] paths in the loader's order, the executable first
      def order
        @order ||= begin
          found = [*files.find { |path| path.delete_suffix(" (deleted)") == @target.executable }]
          found.concat(preloads.filter_map { |name| mapped(name) })
          found.concat(preloaded_unseen) unless @target.environment_known?
          append_needed(found.uniq)
        end
      end

      private

      # In a container the file is the container's.
      def system_wide
        ForeignFile.open(@target.live.file("/etc/ld.so.preload")) { |file| file.read(MOST_BYTES).to_s }
      rescue SystemCallError, Error
        ""
      end

      # By device and inode: a path may lead through mounts that this process does not see.
      def same?(path, name) = File.identical?(@target.live.file(path), @target.live.file(name))

      # The list grows while it is walked: breadth first.
      def append_needed(found)
        found.each do |path|
          (@target.elf(path)&.needed || []).each do |name|
            library = mapped(name)
            found << library if library && !found.include?(library)
          end
        end
      end

      # Without the environment, addresses show what was preloaded: the loader maps preloaded libraries first and the
      # kernel assigns addresses downwards, so they lie above libc; a library opened later lies below.
      def preloaded_unseen
        libc = files.find { |path| libc?(path) }
        return [] unless libc

        above = files.select { |path| first_address(path) > first_address(libc) }
        above.select { |path| Allocators.of_library(path) && defines_malloc?(path) }
             .sort_by { |path| -first_address(path) }
      end

      def files = @files ||= @target.mappings.select(&:file?).map(&:path).uniq.select { |path| @target.elf(path) }

      def first_address(path) = @target.mappings.find { |mapping| mapping.path == path }.first

      def defines_malloc?(path) = @target.elf(path)&.defines?("malloc")

      def libc?(path) = File.basename(path).match?(/\A(libc(\.so|-\d|\.musl)|ld-musl-)/)
    end
  end
end
