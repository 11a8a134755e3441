# frozen_string_literal: true

require "socket"
require_relative "../../system/background_thread"
require_relative "door"

module Culet
  module Metrics
    # A forked process, whose figures the hub of its parent collects: a thread waits for the hub's question and answers
    # it.
    class Member
      # @param door [Door] of the hub
      # @return [Member, nil] nil if there is no hub any more
      def self.join(door)
        new(door)
      rescue SystemCallError, ThreadError
        nil
      end

      # @param door [Door] of the hub
      def initialize(door)
        @door = door
        @socket, theirs = UNIXSocket.pair(:SEQPACKET)
        door.pass(Door::MEMBER, theirs)
        @thread = BackgroundThread.start("culet-metrics") { run }
      end

      # @param format [Symbol]
      # @return [String, nil] nil if there is no hub any more
      # @raise [Culet::Error] when the hub does not answer in time
      def text(format) = @door.text(format)

      # In a forked child of this process.
      #
      # @return [Member, nil] nil if there is no hub any more
      def join
        @socket.close
        Member.join(@door)
      end

      # @return [void]
      def stop
        @thread.kill.join
        @socket.close
        @door.close
      end

      private

      def run
        question = +""
        while @socket.recv(Door::QUESTION.bytesize, 0, question) && !question.empty?
          @socket.sendmsg_nonblock(Metrics.report.message)
        end
      rescue IOError, Errno::EPIPE, Errno::ECONNRESET
        nil # the hub has ended
      rescue StandardError => e
        warn("culet: the figures of process #{::Process.pid} are not collected any more: #{e.class}: #{e.message}")
        @socket.close
      end
    end
  end
end
