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
      # Behind the command, which may itself contain parentheses: fields 3, 4, 10, 14, 15, 20, 22, 23 and 24 of proc(5).
      # The few strings that a match makes are fewer than those of a split.
      FIELDS = /\) (\S) (\d+)(?: \S+){5} (\d+)(?: \S+){3} (\d+) (\d+)(?: \S+){4} (\d+) \S+ (\d+) (\d+) (\d+)/
      private_constant :MOST_BYTES, :FIELDS

      # @param pid [Integer]
      # @raise [SystemCallError] one of GONE_OR_FORBIDDEN
      def initialize(pid)
        @file = File.open("/proc/#{pid}/stat", "rb")
        @text = "".b
        @buffer = "".b
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
        fields = FIELDS.match(text, text.rindex(")")) or return
        found = Reading.new(fields[1], fields[2].to_i, fields[3].to_i, fields[4].to_i + fields[5].to_i, fields[6].to_i,
                            fields[7].to_i, fields[8].to_i, fields[9].to_i * Memory::PAGE_BYTES)
        found unless found.ended?
      end
    end
  end
end
