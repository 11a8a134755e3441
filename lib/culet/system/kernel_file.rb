# frozen_string_literal: true

module Culet
  # Small files of /proc and /sys. A file that is not there says something only where its file system is mounted: without
  # /sys it is unknown whether the kernel has transparent huge pages.
  module KernelFile
    HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
    HUGE_PAGES_FOLDER = "/sys/kernel/mm"

    module_function

    # @param path [String]
    # @return [String, nil] its content; nil where it is not there or may not be read
    def content(path)
      File.read(path).strip
    rescue SystemCallError
      nil
    end

    # @param path [String]
    # @param folder [String] above it, which the kernel always has where that file system is mounted
    # @return [Boolean] whether the kernel has no such file; false also where that is unknown
    def absent?(path, folder:)
      Dir.exist?(folder) && !Dir.empty?(folder) && !File.exist?(path)
    rescue SystemCallError
      false
    end

    # @return [String, nil] "always", "madvise", "never"; "none": the kernel has no transparent huge pages; nil: unknown
    def huge_pages
      content(HUGE_PAGES)&.slice(/\[(\w+)\]/, 1) || ("none" if absent?(HUGE_PAGES, folder: HUGE_PAGES_FOLDER))
    end
  end
end
