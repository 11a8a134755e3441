# frozen_string_literal: true

module Culet
  # Small files of /proc and /sys. A missing file is meaningful only if its file system is mounted.
  #
  # @api private
  module KernelFile
    # The mode of transparent huge pages.
    HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
    # Exists wherever /sys is mounted.
    HUGE_PAGES_FOLDER = "/sys/kernel/mm"
    # More than any of these files; a larger one is not the kernel's.
    MOST_BYTES = 1 << 20
    private_constant :MOST_BYTES

    module_function

    # @return [String] its content; of a file that another process has put there, no more than is bounded
    # @raise [SystemCallError]
    def read(path)
      File.open(path, File::RDONLY | File::NOFOLLOW | File::NONBLOCK | File::NOCTTY) do |file|
        raise Errno::EINVAL, path unless file.stat.file?

        file.read(MOST_BYTES).to_s.scrub("?")
      end
    end

    # @return [String, nil] its content without white space around it; nil if it is missing or unreadable
    def content(path)
      read(path).strip
    rescue SystemCallError
      nil
    end

    # @param folder [String] a folder above it that exists whenever the file system is mounted
    # @return [Boolean] whether the kernel lacks the file; false if that is unknown
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
