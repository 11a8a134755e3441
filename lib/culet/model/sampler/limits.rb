# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/clock"
require_relative "../limit/inquiry"

module Culet
  module Live
    # The limit of the tree, and the steps that culet/limit takes in its processes. One process is asked at a time, in a
    # thread, because its answer may take seconds.
    class Limits
      # Seconds between two questions, and until a process without culet/limit is asked again. A question costs some
      # milliseconds.
      PAUSE = 5
      RETRY = 60
      private_constant :PAUSE, :RETRY

      # @param roots [Array<Integer>] process numbers
      # @param root [String] the folder that has /proc and the mounted control groups
      def initialize(roots, root: "/")
        @root = root
        @roots = roots
        @lock = Mutex.new
        @pids = []
        @asked = {} # by PID: when it may be asked again
        @seen = {}  # by PID: time of the last step
        @steps = []
        @thread = Thread.new { run }
        @thread.report_on_exception = false
      end

      # @param pids [Array<Integer>] the processes that have culet/limit
      def follow(pids) = @lock.synchronize { @pids = pids }

      # @param proportional [Integer, nil] PSS of the tree, in bytes
      # @return [Hash{String => Object}, nil] "limit_bytes", "used_bytes", "headroom_bytes", "source"; nil: no limit
      def current(proportional)
        limit, source, used = @lock.synchronize { @limit&.values_at("limit_bytes", "source", "used_bytes") }
        return unless limit

        used = @outside&.used_bytes || used if @outside&.bytes == limit
        used = proportional || used if source == "setting"
        Limit::Source.usage(limit, source, used)
      end

      # @return [Array<Hash{String => Object}>] steps since the last call: "pid", "at", "step", "freed_bytes"
      def take_steps = @lock.synchronize { @steps.slice!(0..) }

      # @return [void]
      def close = @thread.kill.join

      private

      def run
        loop do
          look_outside if @roots.include?(pid = next_pid)
          ask(pid) if pid
          sleep(PAUSE)
        end
      end

      # The root at first, then whoever has waited longest.
      def next_pid
        pids = @roots.first(1) | @lock.synchronize { @pids }
        @asked.select! { |pid, _| pids.include?(pid) }
        pids.select { |pid| @asked.fetch(pid, 0) <= Clock.now }.min_by { |pid| @asked.fetch(pid, 0) }
      end

      # The limit outside of the process, whose usage the kernel counts and each moment reads.
      def look_outside
        @outside = Limit::Source.new(pid: @roots.first, root: @root)
      rescue SystemCallError
        @outside = nil # the process has ended
      end

      def ask(pid)
        answer = Limit::Inquiry.new(pid, root: @root).call
        @asked[pid] = Clock.now + (answer["kept"] ? 0 : RETRY)
        @lock.synchronize { note(pid, answer) }
      rescue Error
        @asked[pid] = Clock.now + RETRY # it has ended, or does not answer
      end

      # A limit that a process keeps itself counts before that of the kernel.
      def note(pid, answer)
        @limit = answer if answer["kept"] || (pid == @roots.first && !@limit&.fetch("kept"))
        last = @seen.fetch(pid, @started ||= Time.now.to_f)
        fresh = answer["steps"].select { |step| step["at"] > last }
        @seen[pid] = fresh.last["at"] if fresh.any?
        @steps.concat(fresh.map { |step| step.merge("pid" => pid) }).sort_by! { |step| step["at"] }
      end
    end
  end
end
