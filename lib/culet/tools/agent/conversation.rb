# frozen_string_literal: true

require "io/wait"
require_relative "../../errors"
require_relative "../../system/processes"
require_relative "../../system/ruby_options"
require_relative "endpoint"

module Culet
  module Agent
    # Asks the agent in another process something. What can be asked is in ext/culet/agent/listener.h.
    class Conversation
      # Longest first line of an answer, in bytes.
      LINE_BYTES = 1024
      # More than any answer has, in bytes: some KB, or of strings 9 MB.
      ANSWER_BYTES = 32 << 20
      BLOCK_BYTES = 1 << 20
      # For the connection and the transfer, in seconds, beside what the agent was given.
      GRACE_SECONDS = 40
      # Between two attempts where too many ask, at most.
      STEP_SECONDS = 0.05
      BUSY = "busy"
      private_constant :BUSY, :LINE_BYTES, :ANSWER_BYTES, :BLOCK_BYTES, :GRACE_SECONDS, :STEP_SECONDS

      # @return [Integer] the process's number
      attr_reader :pid

      # @param pid [Integer, String] a process number
      # @param verb [String] the one that asks, for sentences that say what to do
      # @param absence [String, nil] what is said where it has no agent; nil: how it gets one
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, verb: "signal", absence: nil)
        @process = Processes::Live.find(pid)
        @pid = @process.pid
        @verb = verb
        @absence = absence
      end

      # @param question [String] without its line's end
      # @param limit_seconds [Float] how long the answer may be worked on
      # @param wait_seconds [Float] how long the process's main thread may take until it begins
      # @return [String] the answer, in bytes
      # @raise [Culet::Error] when the process has no agent or does not answer; the message says why and what to do
      def ask(question, limit_seconds:, wait_seconds:)
        check_running
        @hung_up = false
        @deadline = now + limit_seconds + (2 * wait_seconds) + GRACE_SECONDS
        line = "culet-agent 1 #{question} limit_ms=#{milliseconds(limit_seconds)} wait_ms=#{milliseconds(wait_seconds)}\n"
        loop do
          found = attempt(line) and return found
          rest_a_little
        end
      rescue Errno::EACCES, Errno::EPERM
        raise Error, "process #{@pid} belongs to another user; ask as that user or as root"
      rescue Errno::ENOENT, Errno::ESRCH
        raise Error, "process #{@pid} has ended"
      end

      # @return [String] a sentence for an answer that makes no sense
      def strange = "process #{@pid} answers in a way that this version of culet does not know; ask with the version that it carries"

      private

      # The kernel connects to it even so, and nobody would answer.
      def check_running
        return unless @process.status_fields["State"].to_s.match?(/\A[Tt]/)

        raise Error, "process #{@pid} is stopped; let it run on first: kill -CONT #{@pid}"
      end

      def milliseconds(seconds) = (seconds * 1000).round

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)

      def rest = [@deadline - now, 0].max

      # @return [String, nil] the answer; nil: too many ask, and it is to be tried again
      def attempt(question)
        socket = connect
        begin
          write(socket, question)
          answer(socket)
        ensure
          socket.close
        end
      rescue Errno::EAGAIN
        nil # its queue is full
      rescue EOFError, Errno::ECONNRESET
        @hung_up = true
        nil # it lost patience where many ask, or it has ended
      end

      def connect
        endpoint = Endpoint.new(@process)
        endpoint.connect or raise Error, absence(endpoint)
      rescue Error, Errno::ENOENT, Errno::ESRCH
        raise unless @hung_up

        raise Error, "process #{@pid} ended before it answered"
      end

      # Of many who try again, each at a moment of its own.
      def rest_a_little
        raise Error, time_out("is asked by too many at once") unless rest.positive?

        sleep(rand * STEP_SECONDS)
      end

      # @param reason [String] what the process does at the end of the time; that it hung up before says more
      def time_out(reason) = "process #{@pid} #{@hung_up ? "hangs up" : reason}; ask again"

      # Who is turned away finds the reason even so.
      def write(socket, question)
        socket.write(question)
      rescue Errno::EPIPE
        nil
      end

      def answer(socket)
        word, text = line(socket).split(" ", 2)
        case word
        when "ok" then body(socket, Integer(text.to_s, 10))
        when "error" then raise Error, "process #{@pid} does not tell: #{text}"
        when BUSY then nil
        else raise Error, strange
        end
      rescue ArgumentError
        raise Error, strange
      end

      def line(socket)
        text = +""
        text << receive(socket, 1) until text.end_with?("\n") || text.bytesize > LINE_BYTES
        text.force_encoding(Encoding::UTF_8).scrub.gsub(/[[:cntrl:]]/, " ").strip
      end

      def body(socket, bytes)
        raise ArgumentError unless bytes.between?(0, ANSWER_BYTES)

        text = +"".b
        text << receive(socket, [bytes - text.bytesize, BLOCK_BYTES].min) while text.bytesize < bytes
        text
      end

      def receive(socket, bytes)
        socket.wait_readable(rest) or raise Error, time_out("does not answer")
        socket.readpartial(bytes)
      end

      def absence(endpoint)
        return network_sentence if endpoint.listens? && elsewhere?
        return @absence if @absence

        instead = " (without it, `culet snapshot #{@pid}` keeps all but what Ruby's objects hold)" if @verb == "signal"
        "process #{@pid} has no agent that could be asked; start it with #{RubyOptions.advice("agent")}, or have it require \"culet/agent\"#{instead}"
      end

      def network_sentence
        "process #{@pid} cannot be asked from here, because it has a network of its own; ask from there: nsenter -n -t #{@pid} culet #{@verb} #{@pid}"
      end

      # Abstract sockets belong to a network namespace.
      def elsewhere? = File.readlink("/proc/#{@pid}/ns/net") != File.readlink("/proc/self/ns/net")
    end
  end
end
