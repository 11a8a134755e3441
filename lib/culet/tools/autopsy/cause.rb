# frozen_string_literal: true

require_relative "../../text/numbers"
require_relative "../../text/size"
require_relative "kills"

module Culet
  module Autopsy
    # What has ended the process. In this order: what the kernel's log says, the signal that its parent has seen, the
    # kernel's count of kills in its control group, and the last figures against the limit.
    class Cause
      # The last figures are up to a second old: above this share of the limit, the kernel is the likely cause.
      NEAR = 0.9
      # Below it, the limit is unlikely.
      FAR = 0.75
      # The clocks of the log and of the box may differ by that.
      CLOCKS_SECONDS = 5
      private_constant :NEAR, :FAR, :CLOCKS_SECONDS

      # @return [String] "alive", "kernel" (killed for lack of memory), "signal", "error", "exit" or "unknown"
      attr_reader :kind

      # @return [Boolean] whether it is proven
      attr_reader :certain

      # @return [String] a clause: "was killed by the kernel ..."
      attr_reader :text

      # @param alive [Boolean]
      # @param log [KernelLog]
      # @param count [Kills]
      def initialize(box, alive:, log:, count: Kills.new)
        @box = box
        @log = log
        @count = count
        @kind, @certain, @text = alive ? ["alive", true, "is alive"] : decide
      end

      # @return [Integer, nil] kills in the group since the last figures; nil: not known
      def kills
        return @kills if defined?(@kills)

        now = number(@box.witness&.fetch("kills", nil)) || @count.of(@box)
        before = last&.group_kills
        @kills = now && before && now >= before ? now - before : nil
      end

      # @return [KernelLog::Kill, nil]
      def logged
        return @logged if defined?(@logged)

        since = @box.started_at - CLOCKS_SECONDS
        @logged = @count.same_boot?(@box) && @box.pid ? @log.kill_of(@box.pid, since: since) : nil
      end

      # @return [Float, nil] the highest use of the limit in the last figures
      def share
        used = @box.readings.last(8).filter_map(&:group_used_bytes).max
        used.fdiv(last.limit_bytes) if used && last.limit_bytes
      end

      # @return [Integer, nil] the signal that a process has seen; 0: none
      def signal = number(@box.witness&.fetch("signal", nil))

      private

      def last = @box.readings.last

      def number(text) = (Integer(text, 10) if text&.match?(/\A\d{1,18}\z/))

      def decide
        return error if @box.ending
        return in_log if logged
        return by_signal if signal
        return counted if kills

        ["unknown", false, "ended without running its exit handlers: #{guess}"]
      end

      def error = ["error", true, "ended by itself: #{@box.ending.delete_prefix("error ")}"]

      def in_log
        where = logged.group ? "at the limit of its control group" : "because the machine had no memory left"
        held = logged.resident_bytes ? "; it held #{Text::Size.human(logged.resident_bytes)}" : ""
        ["kernel", true, "was killed by the kernel #{where} (kernel log)#{held}"]
      end

      def by_signal
        return ["exit", true, "ended by itself, without its exit handlers"] if signal.zero?
        unless signal == ::Signal.list.fetch("KILL")
          return ["signal", true,
                  "was ended by SIG#{name_of(signal)}#{crash}"]
        end
        return by_kernel if kills&.positive?
        if kills
          return ["signal", true,
                  "was ended by SIGKILL, not by the kernel: it has killed no process of the control group"]
        end

        ["unknown", false, "was ended by SIGKILL: #{guess}"]
      end

      def crash = %w[SEGV ABRT BUS ILL FPE].include?(name_of(signal)) ? ": it crashed" : ""

      def name_of(number) = ::Signal.signame(number) || number.to_s

      def by_kernel
        ["kernel", true, "was killed by the kernel at the limit of its control group (SIGKILL, and the kernel's " \
                         "count of kills in the group rose by #{kills})"]
      end

      def counted
        if kills.positive?
          ["kernel", false, "was probably killed by the kernel: in its control group, the kernel has killed " \
                            "#{Text::Numbers.count(kills, "process", "processes")} since the last figures"]
        else
          ["unknown", false, "ended without running its exit handlers, and not by the kernel: it has killed no " \
                             "process of the control group. That leaves a SIGKILL of another process, and a crash"]
        end
      end

      def no_limit
        own = @box.notes.reverse.find { |note| note.kind == "limit" && note.bytes }
        return "no limit was seen" unless own

        "no limit of the kernel was seen, only culet's own of #{Text::Size.limit(own.bytes)} (#{own.text})"
      end

      def guess
        return "the cause cannot be known: #{no_limit}" unless share

        at = "the last figures were at #{Text::Numbers.percent(share, 1, digits: 0)} of the limit"
        if share >= NEAR then "probably killed by the kernel, because #{at}"
        elsif share < FAR then "probably not by the kernel, because #{at}"
        else "the cause cannot be known; #{at}"
        end
      end
    end
  end
end
