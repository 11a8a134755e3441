# frozen_string_literal: true

require "socket"
require_relative "../../system/background_thread"
require_relative "collector_socket"

module Culet
  module Metrics
    # A thread of a forked process that answers the requests of the parent's collector. If the collector has lost
    # the socket for lack of descriptors, the thread passes another socket.
    class ForkedProcess
      # Pause after the loss of a socket, in seconds.
      REST = 0.5
      private_constant :REST

      # @param collector [CollectorSocket] of the parent
      # @return [ForkedProcess, nil] nil if the collector has ended
      def self.join(collector)
        new(collector)
      rescue *CollectorSocket::ENDED, ThreadError
        nil
      end

      # @param collector [CollectorSocket] of the parent
      # @raise [SystemCallError] if the collector has ended
      def initialize(collector)
        @collector = collector
        begin
          connect
        rescue Errno::EMFILE, Errno::ENFILE, IO::WaitWritable
          nil # the thread tries again
        end
        failure = "the figures of process #{::Process.pid} are not collected"
        @thread = BackgroundThread.repeat("culet-metrics", failure) { step }
      end

      # @return [String, nil] nil if the collector has ended
      # @raise [Culet::Error] when the collector does not answer in time, or cannot
      def text = @collector.text

      # Connects a forked child of this process.
      #
      # @return [ForkedProcess, nil] nil if the collector has ended
      def join
        @socket&.close
        ForkedProcess.join(@collector)
      end

      # @return [void]
      def stop
        @thread.kill.join
        @socket&.close
        @collector.close
      end

      private

      def connect
        mine, theirs = UNIXSocket.pair(:SEQPACKET)
        @collector.pass(CollectorSocket::PROCESS, theirs)
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
      rescue *CollectorSocket::ENDED
        :done # the collector has ended
      end

      # Answers until the collector closes its end.
      def answer
        question = +""
        @socket.sendmsg_nonblock(message) while receive(question)
      rescue *CollectorSocket::ENDED
        nil
      end

      def receive(question) = @socket.recv(CollectorSocket::QUESTION.bytesize, 0, question) && !question.empty?

      def message
        Metrics.report.message
      rescue SystemCallError
        CollectorSocket::FAILURE
      end
    end
  end
end
