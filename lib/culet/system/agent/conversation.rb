# frozen_string_literal: true

require "io/wait"
require_relative "../../errors"
require_relative "../clock"
require_relative "../processes"
require_relative "../ruby_options"
require_relative "endpoint"

module Culet
  module Agent
    # Sends a request to the agent in another process and reads the answer.
    class Conversation
      # Longest first line of an answer, in bytes.
      LINE_BYTES = 1024
      # Largest answer accepted by default, in bytes; those with strings have up to 9 MB.
      ANSWER_BYTES = 32 << 20
      BLOCK_BYTES = 1 << 20
      # Time for connection and transfer, in seconds, beyond the limits of the request.
      GRACE_SECONDS = 40
      # Longest pause between two attempts, in seconds.
      STEP_SECONDS = 0.05
      BUSY = "busy"
      # Marks the message of a forked copy that hung.
      LATE = "forked copy did not finish in time"
      private_constant :LATE, :BUSY, :LINE_BYTES, :ANSWER_BYTES, :BLOCK_BYTES, :GRACE_SECONDS, :STEP_SECONDS

      # @return [Integer] the process number
      attr_reader :pid

      # @param pid [Integer, String] a process number
      # @param verb [String] the verb of the command line, for error messages
      # @param absence [#call, nil] returns the error message without an agent; nil: how to load one
      # @param most_bytes [Integer] largest answer accepted
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, verb: "signal", absence: nil, most_bytes: ANSWER_BYTES)
        @process = Processes::Live.find(pid)
        @pid = @process.pid
        @verb = verb
        @absence = absence
        @most_bytes = most_bytes
      end

      # @param question [String] the request, without a newline
      # @param limit_seconds [Float] time limit of the agent's work
      # @param wait_seconds [Float] longest wait for the main thread of the process
      # @param into [File, nil] receives the answer, which replaces what it has; nil: the answer is returned
      # @return [String, File] the answer, in bytes
      # @raise [Culet::Error] when the process has no agent or does not answer
      def ask(question, limit_seconds:, wait_seconds:, into: nil)
        @process.check_running
        @into = into
        @hung_up = false
        @deadline = Clock.now + limit_seconds + (2 * wait_seconds) + GRACE_SECONDS
        line = "culet-agent 1 #{question} limit_ms=#{milliseconds(limit_seconds)} " \
               "wait_ms=#{milliseconds(wait_seconds)}\n"
        loop do
          found = attempt(line) and return found
          pause
        end
      rescue Errno::EACCES, Errno::EPERM
        raise Error, "process #{@pid} belongs to another user; run culet as that user or as root"
      rescue Errno::ENOENT, Errno::ESRCH
        raise Error, "process #{@pid} has ended"
      end

      # Asks for what a forked copy of the process answers. A copy that was made while another thread had a library's
      # lock may wait for that lock; the next one is made at another moment.
      #
      # @param question [String] as of ask
      # @param again [Boolean] whether to ask for the next one
      # @param options [Hash] as of ask
      # @return [String, File] as of ask
      # @raise [Culet::Error] as of ask
      def ask_copy(question, again: true, **options)
        ask(question, **options)
      rescue Error => e
        raise unless again && e.message.include?(LATE)

        ask(question, **options)
      end

      # @return [String] error message for an invalid answer
      def strange
        "process #{@pid} sent an answer that this version of culet does not know; " \
          "use the version that the process has loaded"
      end

      private

      def milliseconds(seconds) = (seconds * 1000).round

      def rest = [@deadline - Clock.now, 0].max

      # @return [String, nil] the answer; nil: the agent is busy, try again
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
        nil # the agent closed the connection because it is busy, or the process has ended
      end

      def connect
        endpoint = Endpoint.new(@process)
        endpoint.connect or raise Error, absence(endpoint)
      rescue Error, Errno::ENOENT, Errno::ESRCH
        raise unless @hung_up

        raise Error, "process #{@pid} ended before it answered"
      end

      # A random pause, so that many clients do not try again at once.
      def pause
        raise Error, time_out("is busy with other requests") unless rest.positive?

        sleep(rand * STEP_SECONDS)
      end

      # @param reason [String] used if the process has not closed the connection
      def time_out(reason) = "process #{@pid} #{@hung_up ? "closes the connection" : reason}; try again"

      # A refused client can still read the reason.
      def write(socket, question)
        socket.write(question)
      rescue Errno::EPIPE
        nil
      end

      def answer(socket)
        word, text = line(socket).split(" ", 2)
        case word
        when "ok" then body(socket, Integer(text.to_s, 10))
        when "error" then raise Error, "process #{@pid} refuses: #{text}"
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
        raise ArgumentError unless bytes.between?(0, @most_bytes)

        text = @into ? emptied(@into) : +"".b
        rest = bytes
        while rest.positive?
          text << (block = receive(socket, [rest, BLOCK_BYTES].min))
          rest -= block.bytesize
        end
        text
      end

      # An earlier attempt may have begun to write.
      def emptied(file)
        file.truncate(0)
        file.rewind
        file
      end

      def receive(socket, bytes)
        socket.wait_readable(rest) or raise Error, time_out("does not answer")
        socket.readpartial(bytes)
      end

      def absence(endpoint)
        return network_sentence if endpoint.listens? && elsewhere?
        return @absence.call if @absence

        instead = " (`culet snapshot #{@pid}` works without it, but lacks the object counts)" if @verb == "signal"
        "process #{@pid} has no agent; start it with #{RubyOptions.advice("agent")}, " \
          "or have it require \"culet/agent\"#{instead}"
      end

      def network_sentence
        "process #{@pid} is in another network namespace; run culet there: nsenter -n -t #{@pid} culet #{@verb} #{@pid}"
      end

      # Abstract sockets belong to a network namespace.
      def elsewhere? = File.readlink("/proc/#{@pid}/ns/net") != File.readlink("/proc/self/ns/net")
    end
  end
end
