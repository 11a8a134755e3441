# frozen_string_literal: true

require_relative "../system/elf"
require_relative "../system/executables"
require_relative "../errors"
require_relative "../allocators/locator"

module Culet
  module CLI
    # A command's first word as the file that would run, and what about that file keeps a preload from working.
    class Program
      # Exit statuses of what could not be run, as a shell has them (POSIX, "Exit Status for Commands").
      ABSENT = 127
      REFUSED = 126

      attr_reader :path

      # @param word [String] a path, or a name to look for on PATH
      # @raise [Culet::Error] when there is no such program (exit status 127), or it may not be run (126)
      def self.find(word)
        path = Executables.find(word)
        return new(path) if path

        present = Executables.candidates(word).select { |file| File.exist?(file) }
        raise Error.new("cannot run #{word}: #{refusal(present.first)}", exit_status: present.empty? ? ABSENT : REFUSED)
      end

      def self.refusal(path)
        return "no such program" unless path

        File.directory?(path) ? "it is a directory" : "it is not executable; run `chmod +x #{path}`"
      end
      private_class_method :refusal

      # @param path [String] an executable file
      def initialize(path)
        @path = path
      end

      # @return [Array<String>] one sentence for each reason why the program will not use a preloaded allocator
      def obstacles
        file = binary
        unless file_readable?(file)
          return ["#{file} cannot be read, so culet does not know whether an allocator can be preloaded."]
        end
        return [] unless Elf.file?(file)

        elf = Elf.new(file)
        [foreign(elf), static(elf), privileged(file)].compact
      end

      # @param error [SystemCallError] from exec
      # @return [Culet::Error] with the reason
      def error(error)
        Error.new("cannot run #{path}: #{failure(error)}",
                  exit_status: error.is_a?(Errno::ENOENT) ? ABSENT : REFUSED)
      end

      private

      def failure(error)
        case error
        when Errno::ENOENT then "#{interpreter || "the loader it asks for"} does not exist"
        when Errno::ENOEXEC then "it is not a program, nor a script with a #! line"
        else Error.reason(error)
        end
      end

      def file_readable?(file) = File.readable?(file) || !File.exist?(file)

      # What is loaded for a script is its interpreter.
      def binary = interpreter || path

      def interpreter
        return unless File.readable?(path)

        File.binread(path, 256).to_s[/\A#![ \t]*([^ \t\n]+)/n, 1]
      end

      def foreign(elf)
        own = Allocators::Locator.own
        return if elf.same_kind?(own)

        "#{elf.path} is a #{elf.bits}-bit program for another architecture than this Ruby; the allocator cannot be " \
          "preloaded, so the program uses its own."
      end

      def static(elf)
        return unless elf.same_kind?(Allocators::Locator.own) && elf.static?

        "#{elf.path} is statically linked; nothing can be preloaded, so it uses its own allocator."
      end

      # ld.so(8), "secure-execution mode".
      def privileged(file)
        stat = File.stat(file)
        return unless (stat.setuid? && stat.uid != ::Process.uid) || (stat.setgid? && stat.gid != ::Process.gid)

        "#{file} is set-user-ID or set-group-ID; the loader ignores the preload, so it uses " \
          "its own allocator."
      end
    end
  end
end
