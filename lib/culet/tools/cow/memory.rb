# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../scope/mapping"
require_relative "extents"

module Culet
  module Cow
    # A process's memory by /proc/PID/mem, which pins no page: process_vm_readv would give a forked process a copy of each
    # shared page that it reads. Pages that are not in memory are not to be read either, since that would map them, or bring
    # them back from swap.
    class Memory
      # @param snapshot [Scope::Snapshot] which says what is in memory
      # @yieldparam memory [Memory] open until the block ends
      # @raise [Culet::Error] when the process has ended or may not be read
      def self.open(snapshot)
        memory = new(snapshot)
        yield memory
      ensure
        memory&.close
      end

      # @return [Array<Array(Integer, Integer)>] addresses in memory, in their order: first and past of each stretch
      attr_reader :present

      # @param snapshot [Scope::Snapshot]
      # @raise [Culet::Error] as Memory.open
      def initialize(snapshot)
        @pid = snapshot.pid
        @file = File.open("/proc/#{@pid}/mem", "rb")
        @present = Extents.of(snapshot) { |bits| bits & (Scope::Mapping::PRESENT | Scope::Mapping::ZERO) == Scope::Mapping::PRESENT }
      rescue *Processes::GONE_OR_FORBIDDEN
        raise Error, "the memory of process #{@pid} can no longer be read"
      end

      # @return [Integer] number of the descriptor
      def fileno = @file.fileno

      # @return [void]
      def close = @file.close
    end
  end
end
