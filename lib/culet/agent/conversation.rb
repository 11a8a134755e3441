# frozen_string_literal: true

require "socket"
require_relative "../errors"
require_relative "../processes"
require_relative "../ruby_options"

module Culet
  module Agent
    # Asks the agent in another process something. What can be asked is in ext/culet/agent_listener.h.
    class Conversation
      # How many names an agent tries.
      NAMES = 4
      # Longest first line of an answer, in bytes.
      LINE_BYTES = 1024
      # More than any answer has, in bytes: some KB, or of strings 9 MB.
      ANSWER_BYTES = 32 << 20
      # For the connection and the transfer, in seconds, beside what the agent was given.
      GRACE_SECONDS = 40
      STEP_SECONDS = 0.05
      private_constant :NAMES, :LINE_BYTES, :ANSWER_BYTES, :GRACE_SECONDS, :STEP_SECONDS

      # @return [Integer] the process's number
      attr_reader :pid

      # @param pid [Integer, String] a process number
      # @param verb [String] the one that asks, for sentences that say what to do
      # @raise [Culet::Error] when there is no such process
      def initialize(pid, verb: "signal")
        @process = Processes::Live.find(pid)
        @pid = @process.pid
        @verb = verb
      end

      # @param question [String] without its line's end
      # @param limit_seconds [Float] how long the answer may be worked on
      # @param wait_seconds [Float] how long the process's main thread may take until it begins
      # @return [String] the answer, in bytes
      # @raise [Culet::Error] when the process has no agent or does not answer; the message says why and what to do
      def ask(question, limit_seconds:, wait_seconds:)
        check_running
        @deadline = now + limit_seconds + (2 * wait_seconds) + GRACE_SECONDS
        socket = connect or raise Error, absence
        begin
          socket.write("culet-agent 1 #{question} limit_ms=#{milliseconds(limit_seconds)} wait_ms=#{milliseconds(wait_seconds)}\n")
          answer(socket)
        ensure
          socket.close
        end
      rescue Errno::EACCES, Errno::EPERM
        raise Error, "process #{@pid} belongs to another user; ask as that user or as root"
      rescue Errno::ENOENT, Errno::ESRCH
        raise Error, "process #{@pid} has ended"
      rescue Errno::EPIPE, Errno::ECONNRESET, EOFError
        raise Error, "process #{@pid} ended before it answered"
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

      # @return [UNIXSocket, nil] to the process itself: a name can be taken by anybody, a process's number cannot
      def connect
        names.each do |name|
          socket = open(Socket.sockaddr_un("\0#{name}")) or next
          return socket if peer(socket) == @pid

          socket.close
        end
        nil
      end

      def names = spaces.flat_map { |space| Array.new(NAMES) { |index| "culet-agent/#{inner_pid}/#{space}#{"/#{index}" if index.positive?}" } }

      # Its number where it lives: that of the innermost of its PID namespaces.
      def inner_pid = @inner_pid ||= @process.status_fields["NSpid"].to_s.split.last || @pid

      # The namespace's inode; 0 where the process could not tell it either.
      def spaces = [File.stat("/proc/#{@pid}/ns/pid").ino, 0]

      # A queue that is full for the moment is waited for.
      def open(address)
        socket = Socket.new(:UNIX, :STREAM)
        begin
          socket.connect_nonblock(address)
          socket
        rescue IO::WaitWritable
          raise Error, "process #{@pid} is asked by too many at once; ask again" unless rest.positive?

          sleep(STEP_SECONDS)
          retry
        end
      rescue Errno::ECONNREFUSED
        socket.close
        nil
      end

      # struct ucred begins with the process's number, as it is in our PID namespace.
      def peer(socket) = socket.getsockopt(:SOCKET, :PEERCRED).unpack("i").first

      def answer(socket)
        word, text = line(socket).split(" ", 2)
        case word
        when "ok" then body(socket, Integer(text.to_s, 10))
        when "error" then raise Error, "process #{@pid} does not tell: #{text}"
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
        text << receive(socket, bytes - text.bytesize) while text.bytesize < bytes
        text
      end

      def receive(socket, bytes)
        socket.wait_readable(rest) or raise Error, "process #{@pid} does not answer; ask again"
        socket.readpartial(bytes)
      end

      def absence
        return network_sentence if elsewhere?

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
