# frozen_string_literal: true

require_relative "../../errors"

module Culet
  module Autopsy
    # The kills for lack of memory in the kernel's log. Reading it takes root, or kernel.dmesg_restrict=0.
    class KernelLog
      FILE = "/dev/kmsg"
      # "6,1234,5678901,-;text": priority, number, microseconds since the start of the machine.
      LINE = /\A\d+,\d+,(\d{1,18}),[^;]*;([^\n]*)/
      # Linux since 4.20.
      SITUATION = /oom-kill:constraint=(\w+).*?(?:oom_memcg=([^,]*))?,?task_memcg=([^,]*),task=(.*),pid=(\d+),uid=\d+\z/
      KILLED = /Killed process (\d+)[ ,]+\((.*?)\)/
      SIZE = /(?:anon|file|shmem)-rss:(\d{1,15})kB/
      MOST_LINES = 200_000
      RECORD_BYTES = 8192
      MICROSECONDS = 1_000_000
      private_constant :FILE, :LINE, :SITUATION, :KILLED, :SIZE, :MOST_LINES, :RECORD_BYTES, :MICROSECONDS

      # A kill: at: Time; pid: in the machine's own numbers; name; group: the limited control group, nil if the machine
      # had no memory left; task_group: of the process; resident_bytes.
      Kill = Struct.new(:at, :pid, :name, :group, :task_group, :resident_bytes)

      # @return [KernelLog]
      def self.read = new(*lines)

      # @return [Array(Array<String>, String or nil)] the records, and the reason why there are none
      def self.lines
        found = []
        File.open(FILE, File::RDONLY | File::NONBLOCK | File::BINARY) do |file|
          while found.size < MOST_LINES
            record = next_record(file)
            break if record.nil?

            found << record unless record.empty?
          end
        end
        [found, nil]
      rescue SystemCallError => e
        [found, Error.reason(e)]
      end

      def self.next_record(file)
        record = file.read_nonblock(RECORD_BYTES, exception: false)
        record if record.is_a?(String)
      rescue Errno::EPIPE
        "" # the kernel has overwritten it meanwhile
      rescue EOFError
        nil
      end
      private_class_method :next_record

      # @return [String, nil] why the log cannot be read
      attr_reader :problem

      # @return [Array<Kill>] in order of time
      attr_reader :kills

      # @param records [Array<String>] as of /dev/kmsg
      # @param problem [String, nil] why there are none
      # @param booted_at [Time] start of the machine's clock
      def initialize(records, problem = nil, booted_at: Time.now - ::Process.clock_gettime(::Process::CLOCK_BOOTTIME))
        @problem = problem
        @booted_at = booted_at
        @kills = []
        @situation = nil
        records.each { |record| add(record) }
      end

      # @param since [Time]
      # @return [Kill, nil] of the process with this number
      def kill_of(pid, since:) = @kills.reverse.find { |kill| kill.pid == pid && kill.at >= since }

      private

      def add(record)
        microseconds, text = LINE.match(record.dup.force_encoding(Encoding::UTF_8).scrub("?"))&.captures
        return unless text

        if (match = SITUATION.match(text))
          @situation = { group: match[1] == "CONSTRAINT_MEMCG" ? match[2] : nil, task_group: match[3],
                         pid: match[5].to_i }
        elsif (match = KILLED.match(text))
          kill(Integer(microseconds, 10), match)
        end
      end

      def kill(microseconds, match)
        pid = match[1].to_i
        known = @situation && @situation[:pid] == pid ? @situation : {}
        group = known.fetch(:group) { "?" if match.pre_match.include?("cgroup") }
        sizes = match.post_match.scan(SIZE).flatten
        @kills << Kill.new(@booted_at + microseconds.fdiv(MICROSECONDS), pid, match[2], group, known[:task_group],
                           sizes.empty? ? nil : sizes.sum(&:to_i) << 10)
        @situation = nil
      end
    end
  end
end
