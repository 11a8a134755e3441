# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../scope/mapping"
require_relative "page_ranges"

module Culet
  module Cow
    # A process's memory through /proc/PID/mem. process_vm_readv pins pages, which unshares them in a forked process.
    # Absent pages are not read, because a read would map them or swap them in.
    class Memory
      # @param snapshot [Scope::Snapshot] whose present pages are readable
      # @yieldparam memory [Memory] open during the block
      # @raise [Culet::Error] when the process has ended or is not readable
      def self.open(snapshot)
        memory = new(snapshot)
        yield memory
      ensure
        memory&.close
      end

      # @return [Array<Array(Integer, Integer)>] start and end of each range of present pages
      attr_reader :present

      # @param snapshot [Scope::Snapshot]
      # @raise [Culet::Error] as Memory.open
      def initialize(snapshot)
        @pid = snapshot.pid
        @file = File.open("/proc/#{@pid}/mem", "rb")
        @present = PageRanges.of(snapshot) do |bits|
          bits & (Scope::Mapping::PRESENT | Scope::Mapping::ZERO) == Scope::Mapping::PRESENT
        end
      rescue *Processes::GONE_OR_FORBIDDEN
        raise Error, "the memory of process #{@pid} is no longer readable"
      end

      # @return [Integer] the file descriptor
      def fileno = @file.fileno

      # @return [void]
      def close = @file.close
    end
  end
end
