# frozen_string_literal: true

require_relative "../../text/size"

module Culet
  module Limits
    # The private memory of a process.
    class PrivateMemory
      # @param pid [Integer]
      # @raise [Culet::Error] when the process cannot be read
      def initialize(pid)
        @snapshot = PrivateMemory.snapshot(pid)
      end

      # @return [Integer] bytes of pages that no other process maps
      def private_bytes = @snapshot.private_bytes

      # @param most [Integer] bytes allowed
      # @return [String] why the assertion failed
      def explanation(most)
        "process #{@snapshot.pid} has #{Text::Size.limit(private_bytes, most)} of private memory, " \
          "not less than #{Text::Size.limit(most)}; " \
          "its #{Text::Size.human(@snapshot.process.rss_bytes)} of resident memory:\n" \
          "#{PrivateMemory.rows(SnapshotLevels.new(@snapshot).levels)}"
      end

      # @param pid [Integer]
      # @return [Scope::Snapshot]
      # @raise [Culet::Error]
      def self.snapshot(pid)
        return Scope::Reader.new(pid, chunks: 0).snapshot unless pid == ::Process.pid

        admit = ->(reader) { Culet.send(:admit_reader, reader) } if Culet.native?
        Scope::OwnReader.new(admit: admit, chunks: 0).snapshot
      end

      # @param levels [Hash{String => Integer}] bytes by level
      # @return [String] one line for each level that is not empty
      def self.rows(levels)
        present = levels.reject { |_, bytes| bytes.zero? }
        present.map do |name, bytes|
          format("  %-24s %10s", Levels::TITLES.fetch(name), Text::Size.human(bytes))
        end.join("\n")
      end
    end
  end
end
