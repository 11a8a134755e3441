# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "../../text/size"

module Culet
  module Limit
    # The last steps of the escalation, their lines in the log, and their notes in the black box if there is one.
    class History
      # Steps that are kept.
      MOST = 64
      # A step is logged once in so many seconds, with those between in one line. One that freed next to nothing
      # is logged once, until it frees something; one that frees nothing by itself each time.
      INTERVAL = 10.0
      private_constant :INTERVAL

      # @param log [#call] gets each line
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

      # @param freed [Integer, nil] bytes; nil: the step frees nothing by itself
      # @param used [Integer] bytes, after the step
      # @param limit [Integer] bytes
      # @param detail [String, nil]
      # @param times [Integer] how often it was done
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
