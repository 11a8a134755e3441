# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../text/size"

module Culet
  module Limit
    # Keeps the last steps of the escalation, and writes them to the log and to the black box.
    class History
      # Maximum number of steps.
      MOST = 64
      # Minimum seconds between two lines for a kind of step; a line has the sum since the last one. Steps that free
      # next to nothing are logged once, until one frees more; steps that free nothing by themselves always.
      INTERVAL = 10.0
      private_constant :INTERVAL

      # @param log [#call] writes a line
      def initialize(log)
        @log = log
        @steps = []
        @logged = {} # by step: when the last line was written
        @unlogged = Hash.new { |hash, step| hash[step] = [0, 0] } # how often since then, and the bytes freed
        @futile = {} # by step: whether the last line was of one that freed next to nothing
      end

      # @return [Array<Hash{String => Object}>] the steps, the oldest first: "at" (seconds since 1970), "step",
      #   "freed_bytes"
      attr_reader :steps

      # @param step [String] the name of the step
      # @param freed [Integer, nil] bytes; nil: the step frees nothing by itself
      # @param used [Integer] bytes, after the step
      # @param limit [Integer] bytes
      # @param detail [String, nil] for the log
      # @param times [Integer] number of times that the step ran
      def add(step, freed:, used:, limit:, detail: nil, times: 1)
        # a new Array each time: a trap handler may read it, and cannot lock
        @steps = [*@steps, { "at" => Time.now.to_f, "step" => step, "freed_bytes" => freed.to_i }].last(MOST)
        BlackBox.step(step, freed_bytes: freed.to_i) if defined?(BlackBox.step)
        @unlogged[step] = @unlogged[step].zip([times, freed.to_i]).map(&:sum)
        futile = freed && @unlogged[step].last < limit * Backoff::FUTILE
        write(step, used, limit, detail, futile, freed) if freed.nil? || due?(step, futile)
      end

      private

      def due?(step, futile)
        return false if futile && @futile[step]

        now = Clock.now
        return false if @logged[step] && now - @logged[step] < INTERVAL

        @logged[step] = now
        true
      end

      def write(step, used, limit, detail, futile, freed)
        @futile[step] = futile
        times, bytes = @unlogged.delete(step)
        details = [detail, ("#{times} times" if times > 1)].compact
        @log.call("culet: limit #{Text::Size.limit(limit)}: #{step}#{" (#{details.join(", ")})" if details.any?}" \
                  "#{" freed #{Text::Size.human(bytes)}" if freed}, #{Text::Size.human(used)} in use " \
                  "(#{used * 100 / limit} %)#{"; repeated less often, and not logged until it frees more" if futile}")
      end
    end
  end
end
