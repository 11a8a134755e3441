# frozen_string_literal: true

module Culet
  module Limit
    # The last steps of the ladder, their lines in the log, and their notes in the black box if there is one.
    class History
      # Steps that are kept.
      MOST = 64
      # The same step is logged once in so many seconds, with those between in one line; a restart always.
      INTERVAL = 10.0
      UNITS = [["GB", 10**9], ["MB", 10**6], ["kB", 10**3]].freeze
      private_constant :UNITS

      # @param bytes [Integer]
      # @return [String] e.g. "12.5 MB"
      def self.size(bytes)
        unit, one = UNITS.find { |_, least| bytes >= least } || ["bytes", 1]
        one == 1 ? "#{bytes} #{unit}" : format("%<number>.1f %<unit>s", number: bytes.fdiv(one), unit: unit)
      end

      # @param log [#call] gets each line
      def initialize(log)
        @log = log
        @steps = []
        @logged = {} # by step: when the last line was written
        @unlogged = Hash.new { |hash, step| hash[step] = [] } # the bytes that steps since then have freed
      end

      # @return [Array<Hash{String => Object}>] the steps, the oldest first: "at" (seconds since 1970), "step",
      #   "freed_bytes"
      attr_reader :steps

      # @param step [String]
      # @param freed [Integer] bytes
      # @param used [Integer] bytes, after the step
      # @param limit [Integer] bytes
      # @param detail [String, nil]
      # @return [void]
      def add(step, freed:, used:, limit:, detail: nil)
        # a new Array each time: a trap handler may read it, and cannot lock
        @steps = [*@steps, { "at" => Time.now.to_f, "step" => step, "freed_bytes" => freed }].last(MOST)
        BlackBox.step(step, freed_bytes: freed) if defined?(BlackBox.step)
        @unlogged[step] << freed
        write(step, used, limit, detail) if due?(step)
      end

      private

      def due?(step)
        now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
        return false if step != "restart" && @logged[step] && now - @logged[step] < INTERVAL

        @logged[step] = now
        true
      end

      def write(step, used, limit, detail)
        freed = @unlogged.delete(step)
        detail = [detail, ("#{freed.size} times" if freed.size > 1)].compact.join(", ")
        @log.call("culet: limit #{self.class.size(limit)}: #{step}#{" (#{detail})" unless detail.empty?} freed " \
                  "#{self.class.size(freed.sum)}, #{self.class.size(used)} in use (#{used * 100 / limit} %)")
      end
    end
  end
end
