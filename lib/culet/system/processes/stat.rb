# frozen_string_literal: true

require_relative "cpu"
require_relative "memory"

module Culet
  module Processes
    # /proc/PID/stat and statm (see proc(5)) of one process, for repeated reading. Open files belong to that process
    # alone, also after the number is used again.
    class Stat
      # A reading: state's letter, the parent's number, minor page faults and CPU ticks of the process alone, threads,
      # clock ticks between the machine's start and the process's, virtual and resident bytes, of the latter those in
      # files and shared memory.
      Reading = Struct.new(:state, :parent_pid, :faults, :ticks, :threads, :start_ticks, :virtual_bytes,
                           :resident_bytes, :file_bytes) do
        # @return [Float] seconds of CPU time
        def cpu_seconds = ticks.fdiv(Cpu::TICKS_PER_SECOND)

        # @return [Float] when the process was started or forked, in seconds since 1970
        def started_at = (Cpu.booted_at + start_ticks.fdiv(Cpu::TICKS_PER_SECOND)).round(2)

        # @return [Boolean] whether the process has ended
        def ended? = Cpu::ENDED.include?(state)
      end

      # Longer than the file.
      MOST_BYTES = 2048
      private_constant :MOST_BYTES

      # @param root [String] the folder that has /proc
      # @raise [SystemCallError] one of GONE_OR_FORBIDDEN
      def initialize(pid, root: "/")
        @file = File.open(File.join(root, "proc/#{pid}/stat"), "rb")
        @statm = File.open(File.join(root, "proc/#{pid}/statm"), "rb")
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
      def close = [@file, @statm].each(&:close)

      private

      def parse(text)
        fields = Cpu.fields(text) or return
        # Since Linux 6.16 statm sums what the processors count; stat lags by up to 64 pages for each of them.
        found = Reading.new(fields[:state], fields[:parent].to_i, fields[:faults].to_i,
                            fields[:user].to_i + fields[:system].to_i, fields[:threads].to_i, fields[:start].to_i,
                            fields[:virtual].to_i, *Memory.statm(@statm.pread(MOST_BYTES, 0)))
        found unless found.ended?
      end
    end
  end
end
