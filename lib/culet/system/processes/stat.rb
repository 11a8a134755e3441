# frozen_string_literal: true

require_relative "cpu"
require_relative "memory"

module Culet
  module Processes
    # /proc/PID/stat (see proc(5)) of one process, for repeated reading. The open file belongs to that process alone,
    # also after the number is used again.
    class Stat
      # A reading: state's letter, the parent's number, minor page faults and CPU ticks of the process alone, threads,
      # clock ticks between the machine's start and the process's, virtual and resident bytes.
      Reading = Struct.new(:state, :parent_pid, :faults, :ticks, :threads, :start_ticks, :virtual_bytes,
                           :resident_bytes) do
        # @return [Float] seconds of CPU time
        def cpu_seconds = ticks.fdiv(Cpu::TICKS_PER_SECOND)

        # @return [Boolean] whether the process has ended
        def ended? = %w[Z X].include?(state)
      end

      # Longer than the file.
      MOST_BYTES = 2048
      # Those that are read, and the rest.
      FIELDS = 23
      private_constant :MOST_BYTES, :FIELDS

      # @param pid [Integer]
      # @raise [SystemCallError] one of GONE_OR_FORBIDDEN
      def initialize(pid)
        @file = File.open("/proc/#{pid}/stat")
        @text = +""
        @buffer = +""
      end

      # @return [Reading, nil] the last one if nothing has changed; nil when the process has ended
      def read
        return @reading if @file.pread(MOST_BYTES, 0, @buffer) == @text

        @text, @buffer = @buffer, @text
        @reading = parse(@text)
      rescue Errno::ESRCH, EOFError
        @reading = nil
      end

      # @return [void]
      def close = @file.close

      private

      def parse(text)
        fields = text.byteslice((text.rindex(")") + 2)..).split(" ", FIELDS)
        numbers = fields.values_at(1, 7, 11, 12, 17, 19, 20, 21).map(&:to_i)
        parent, faults, user, system, threads, start, virtual, resident = numbers
        found = Reading.new(fields.first, parent, faults, user + system, threads, start, virtual,
                            resident * Memory::PAGE_BYTES)
        found unless found.ended?
      end
    end
  end
end
