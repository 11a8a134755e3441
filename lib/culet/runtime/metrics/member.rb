# frozen_string_literal: true

require "socket"
require_relative "../../system/background_thread"
require_relative "door"

module Culet
  module Metrics
    # A forked process, whose figures the hub of its parent collects: a thread waits for the hub's question and answers
    # it. If the hub lost the socket, because it had no descriptor for it, the thread passes it another one.
    class Member
      # From the loss of a socket to the next one, in seconds.
      REST = 0.5
      private_constant :REST

      # @param door [Door] of the hub
      # @return [Member, nil] nil if there is no hub any more
      def self.join(door)
        new(door)
      rescue *Door::ENDED, ThreadError
        nil
      end

      # @param door [Door] of the hub
      # @raise [SystemCallError] if there is no hub any more
      def initialize(door)
        @door = door
        begin
          connect
        rescue Errno::EMFILE, Errno::ENFILE, IO::WaitWritable
          nil # the thread tries again
        end
        failure = "the figures of process #{::Process.pid} are not collected"
        @thread = BackgroundThread.repeat("culet-metrics", failure) { step }
      end

      # @param format [Symbol]
      # @return [String, nil] nil if there is no hub any more
      # @raise [Culet::Error] when the hub does not answer in time, or cannot
      def text(format) = @door.text(format)

      # In a forked child of this process.
      #
      # @return [Member, nil] nil if there is no hub any more
      def join
        @socket&.close
        Member.join(@door)
      end

      # @return [void]
      def stop
        @thread.kill.join
        @socket&.close
        @door.close
      end

      private

      def connect
        mine, theirs = UNIXSocket.pair(:SEQPACKET)
        @door.pass(Door::MEMBER, theirs)
        @socket = mine
      ensure
        mine&.close unless @socket
      end

      def step
        connect unless @socket
        answer
        @socket.close
        @socket = nil
        sleep(REST)
      rescue *Door::ENDED
        :done # the hub has ended
      end

      # Until the hub closes its end.
      def answer
        question = +""
        @socket.sendmsg_nonblock(message) while receive(question)
      rescue *Door::ENDED
        nil
      end

      def receive(question) = @socket.recv(Door::QUESTION.bytesize, 0, question) && !question.empty?

      def message
        Metrics.report.message
      rescue SystemCallError
        Door::FAILURE
      end
    end
  end
end
