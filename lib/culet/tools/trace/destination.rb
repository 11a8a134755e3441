# frozen_string_literal: true

require_relative "header"

module Culet
  module Trace
    # Where a recording goes: FILE for the command itself, FILE.PID for each process that it forks and each program
    # that is executed in place of one, FILE.PID.2 and so on for the next one in the same process.
    class Destination
      attr_reader :path

      # @param path [String] as the user gave it
      def initialize(path)
        @path = File.expand_path(path)
      end

      # Makes way for a new recording: an earlier one under this name is removed, with its children's files.
      #
      # @raise [Culet::Error] when the name cannot be used
      def prepare
        refuse_unwritable
        refuse_foreign
        files.each { |file| File.unlink(file) }
      rescue SystemCallError => e
        raise Error, "cannot replace #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
      end

      # @return [Array<String>] the trace files there are, the command's own first, then by process number
      def files
        children = Dir.children(File.dirname(path)).filter_map do |name|
          match = /\A#{Regexp.escape(File.basename(path))}\.(\d+)(?:\.(\d+))?\z/.match(name)
          [match[1].to_i, match[2].to_i, File.join(File.dirname(path), name)] if match
        end
        [path, *children.sort.map(&:last)].select { |file| Header.trace?(file) }
      end

      private

      def refuse_unwritable
        directory = File.dirname(path)
        raise Error, "#{path} is a directory; name a file" if File.directory?(path)
        raise Error, "cannot write #{path}: there is no directory #{directory}" unless File.directory?(directory)
        raise Error, "cannot write #{path}: the directory #{directory} may not be written to" unless File.writable?(directory)
      end

      # A slip of the fingers must not cost anybody a file that is no trace.
      def refuse_foreign
        return if !File.exist?(path) || Header.trace?(path)

        raise Error, "#{path} is there already and is not a trace; name another file with -o, or remove it"
      end
    end
  end
end
