# frozen_string_literal: true

require_relative "../errors"
require_relative "../processes"
require_relative "../scope/mapping"
require_relative "extents"

module Culet
  module Cow
    # The bytes of a process's pages, while it runs. Read from /proc/PID/mem, which pins no page: process_vm_readv would give
    # a forked process a copy of each shared page that it reads. Pages that are not in memory are not read either, since that
    # would map them, or bring them back from swap.
    class Memory
      WORD_BYTES = 8
      # What `peek` keeps.
      WINDOW_BYTES = 1 << 16
      private_constant :WINDOW_BYTES

      # @param snapshot [Scope::Snapshot] which says what is in memory
      # @yieldparam memory [Memory] open until the block ends
      # @raise [Culet::Error] when the process has ended or may not be read
      def self.open(snapshot)
        memory = new(snapshot)
        yield memory
      ensure
        memory&.close
      end

      # @param snapshot [Scope::Snapshot]
      # @raise [Culet::Error] as Memory.open
      def initialize(snapshot)
        @pid = snapshot.pid
        @file = File.open("/proc/#{@pid}/mem", "rb")
        @present = Extents.new(snapshot) { |bits| bits & (Scope::Mapping::PRESENT | Scope::Mapping::ZERO) == Scope::Mapping::PRESENT }
      rescue *Processes::GONE_OR_FORBIDDEN
        raise Error, "the memory of process #{@pid} can no longer be read"
      end

      # @param first [Integer] address
      # @param past [Integer] address
      # @return [Boolean] whether all of it is in memory
      def present?(first, past)
        bytes = 0
        @present.each(first, past) { |from, to| bytes += to - from }
        bytes == past - first
      end

      # @param first [Integer] address
      # @param past [Integer] address
      # @return [String, nil] the bytes there, zeroes for pages that are not in memory; nil when they could not be read
      def read(first, past)
        text = "".b
        @present.each(first, past) do |from, to|
          text << ("\0" * (from - first - text.bytesize)) << @file.pread(to - from, from)
          return nil if text.bytesize < to - first
        end
        text << ("\0" * (past - first - text.bytesize))
      rescue Errno::EIO, Errno::ESRCH, Errno::EFAULT, EOFError
        nil # unmapped meanwhile, or the process has ended
      end

      # The same of few bytes, for who goes on nearby.
      #
      # @param first [Integer] address
      # @param past [Integer] address
      # @return [String, nil] as `read`
      def peek(first, past)
        from = first - (first % WINDOW_BYTES)
        return read(first, past) if past > from + WINDOW_BYTES

        @window = read(from, from + WINDOW_BYTES) unless @from == from
        @from = from
        @window&.byteslice(first - from, past - first)
      end

      # @return [void]
      def close = @file.close
    end
  end
end
