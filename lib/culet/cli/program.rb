# frozen_string_literal: true

require_relative "../system/executables"
require_relative "../errors"
require_relative "../allocators/preload"

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
        file = interpreter || path # what is loaded for a script is its interpreter
        unless file_readable?(file)
          return ["#{file} cannot be read, so culet does not know whether an allocator can be preloaded."]
        end

        Allocators::Preload.obstacles(file)
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

      def interpreter
        return unless File.readable?(path)

        File.binread(path, 256).to_s[/\A#![ \t]*([^ \t\n]+)/n, 1]
      end
    end
  end
end
