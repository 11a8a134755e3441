# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/agent/endpoint"
require_relative "../../system/clock"
require_relative "../../system/foreign_json"
require_relative "../../system/processes"

module Culet
  module Live
    # The counters that the agent of one process reports, over a connection that is kept. No call waits.
    class AgentConnection
      QUESTION = "culet-agent 1 figures\n"
      # More than an answer has.
      MOST_BYTES = 4096
      # More counters than it has, and larger ones.
      MOST_COUNTERS = 64
      LARGEST = 1 << 56
      # Seconds to the next attempt where there is no agent: a young process may start one soon.
      RETRY = 10
      RETRY_YOUNG = 1
      private_constant :QUESTION, :MOST_BYTES, :MOST_COUNTERS, :LARGEST, :RETRY, :RETRY_YOUNG

      # @return [Hash{String => Integer}, nil] the last answer, the same object if the one before it was equal; nil: the
      #   process has no agent, or has not answered yet
      attr_reader :last

      # @return [Float] when `ask` was last called, of CLOCK_MONOTONIC
      attr_reader :asked_at

      def initialize(pid)
        @pid = pid
        @born = Clock.now
        @asked_at = 0.0
        @next_attempt = @born
        @text = +"".b
      end

      # Sends the question, unless an answer is due.
      #
      # @return [BasicSocket, nil] what to wait for; nil: no answer is due
      def ask
        @asked_at = Clock.now
        connect if @socket.nil? && @asked_at >= @next_attempt
        return unless @socket
        return @socket if @asked

        @asked = true if @socket.write_nonblock(QUESTION, exception: false) == QUESTION.bytesize
        @socket
      rescue SystemCallError
        lose
      end

      # Reads what has come.
      #
      # @return [Boolean] whether the answer is complete, or none is to be expected
      def receive
        return true unless @socket

        got = @socket.read_nonblock(MOST_BYTES, exception: false)
        return false if got == :wait_readable
        return !lose if got.nil?

        @text << got
        complete
      rescue SystemCallError
        !lose
      end

      # @return [void]
      def close
        @socket&.close
        @socket = nil
      end

      private

      def connect
        @next_attempt = Clock.now + (Clock.now - @born < RETRY ? RETRY_YOUNG : RETRY)
        @socket = Agent::Endpoint.new(Processes::Live.new(@pid)).connect
      rescue Error, SystemCallError
        nil # it has none for this user, or it has ended
      end

      def lose
        close
        @text.clear
        @last = @body = nil
        @asked = false
        nil
      end

      def complete
        head, rest = @text.split("\n", 2)
        length = head[/\Aok (\d{1,4})\z/, 1]&.to_i if rest
        return !lose if @text.bytesize > MOST_BYTES || (rest && length.nil?)
        return false unless rest && rest.bytesize >= length

        @asked = false
        take(rest.byteslice(0, length))
        @text.clear
        true
      end

      def take(body)
        return if body == @body

        @last = parse(body) or return lose
        @body = body
      end

      def parse(text)
        answer = ForeignJson.parse(text)
        return unless answer.is_a?(Hash) && answer.size <= MOST_COUNTERS

        answer if answer.each_value.all? { |number| number.is_a?(Integer) && number.between?(0, LARGEST) }
      rescue JSON::ParserError
        nil
      end
    end
  end
end
