# frozen_string_literal: true

require "open3"
require_relative "../system/elf"
require_relative "../system/executables"

module Culet
  module Allocators
    # Finds a shared library the way the dynamic loader would: LD_LIBRARY_PATH,
    # the loader's cache, then the directories libc itself came from. No
    # directory name of any architecture is written here.
    class Locator
      # Directories without an architecture in their name that loaders search by default.
      COMMON = %w[/usr/local/lib /usr/local/lib64 /lib64 /usr/lib64 /lib /usr/lib].freeze
      private_constant :COMMON

      # @param environment [#[]] for LD_LIBRARY_PATH and PATH
      def initialize(environment: ENV)
        @environment = environment
      end

      # @param patterns [Array<Regexp>] file names, best kind first; group 1 is the version, which may be absent
      # @return [String, nil] absolute path of the newest library of the first kind that is there and that
      #   this machine's processes can load
      def find(patterns)
        [preferred, installed].each do |files|
          patterns.each do |pattern|
            path = newest(files, pattern)
            return path if path
          end
        end
        nil
      end

      private

      def newest(files, pattern)
        matches = files.filter_map do |path|
          match = pattern.match(File.basename(path))
          [version(path, pattern), path] if match && loadable?(path)
        end
        matches.max_by { |key, path| [key, -path.size] }&.last
      end

      # A link carries the short version, the file behind it the full one. The link is what survives an upgrade, so
      # both count alike and the shorter path wins.
      def version(path, pattern)
        match = pattern.match(File.basename(File.realpath(path))) || pattern.match(File.basename(path))
        parts = (match[1] || "0").split(".").map(&:to_i)
        parts.fill(0, parts.size...6)
      end

      # What LD_LIBRARY_PATH names comes before anything newer elsewhere: it is the user's choice.
      def preferred = @preferred ||= files_in(@environment["LD_LIBRARY_PATH"].to_s.scrub.split(/[:;]/).reject(&:empty?))

      def installed = @installed ||= (cached + files_in(libc_directories + COMMON)).uniq

      def files_in(directories) = directories.uniq.flat_map { |directory| Dir[File.join(directory, "lib*.so*")] }

      # The loader's cache as ldconfig prints it: "name (kind) => path".
      def cached
        ldconfig = Executables.find("ldconfig", search: [@environment["PATH"], "/sbin", "/usr/sbin"].compact.join(":"))
        return [] unless ldconfig

        text, status = Open3.capture2(ldconfig, "-p", err: File::NULL)
        status.success? ? text.scrub.each_line.filter_map { |line| line[/ => (\S.*)$/, 1] } : []
      end

      # Where this process has its libc from, by both names of a merged /usr.
      def libc_directories
        maps = File.read("/proc/self/maps", encoding: Encoding::UTF_8).scrub
        libc = maps[%r{ (/\S*/)(?:libc\.so\.6|libc-2\.\d+\.so|ld-musl\S*)$}, 1]
        return [] unless libc

        directory = libc.chomp("/")
        [directory, directory.delete_prefix("/usr"), "/usr#{directory}", "/usr/local#{directory.delete_prefix("/usr")}"]
      rescue Errno::ENOENT
        [] # a platform without /proc has none of these libraries either
      end

      def loadable?(path)
        Elf.file?(path) && Elf.new(path).same_kind?(self.class.own)
      rescue Elf::Invalid, SystemCallError
        false
      end

      class << self
        # @return [Elf] the running program
        def own = @own ||= Elf.new("/proc/self/exe")
      end
    end
  end
end
