# frozen_string_literal: true

require_relative "../../system/atomic_file"
require_relative "header"

module Culet
  module Trace
    # The trace files of a recording: FILE of the command, whatever it executes, FILE.PID of each child process,
    # FILE.PID.2 and so on where a process number comes again.
    class Files
      attr_reader :path

      # @param path [String] as the user gave it
      def initialize(path)
        @path = File.expand_path(path)
      end

      # Removes the files of an earlier recording.
      #
      # @raise [Culet::Error] when FILE cannot be written
      def prepare
        AtomicFile.check(path)
        refuse_foreign
        files.each { |file| File.unlink(file) }
      rescue SystemCallError => e
        raise Error, "cannot replace #{path}: #{Error.reason(e)}"
      end

      # @return [Array<String>] existing files, the command's first, then by process number
      def files
        # Other names in the folder may be invalid UTF-8.
        pattern = /\A#{Regexp.escape(File.basename(path).b)}\.(\d+)(?:\.(\d+))?\z/n
        children = Dir.children(File.dirname(path)).filter_map do |name|
          match = pattern.match(name.b)
          [match[1].to_i, match[2].to_i, File.join(File.dirname(path), name)] if match
        end
        [path, *children.sort.map(&:last)].select { |file| Header.trace?(file) }
      end

      private

      # Other files than traces are not overwritten.
      def refuse_foreign
        return if !File.exist?(path) || Header.trace?(path)

        raise Error, "#{path} exists and is not a trace; choose another file with -o, or remove it"
      end
    end
  end
end
