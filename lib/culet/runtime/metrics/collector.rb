# frozen_string_literal: true

require "socket"
require_relative "../../system/background_thread"
require_relative "../../system/clock"
require_relative "collector_socket"
require_relative "forked_process"
require_relative "kernel_readings"

module Culet
  module Metrics
    # Collects the metrics of this process and of its forked processes, in one thread. Forked processes pass a socket of
    # own through one that they inherit: to be asked at each scrape, or for the text of a scrape. A process that ends
    # closes its socket, and is forgotten at once.
    class Collector
      # Time limit for their answers in seconds. A process whose Ruby threads are busy may need longer to run its
      # thread. Then its last answer serves, and this one at the next scrape.
      WAIT = 0.5
      # Time limit for the receiver of a text, in seconds.
      SEND = 2
      ANSWER_BYTES = 1 << 20
      private_constant :ANSWER_BYTES

      # A forked process: asked: whether an answer is due; at: the time of the last answer.
      Peer = Struct.new(:pid, :socket, :asked, :samples, :at)
      private_constant :Peer

      # @param worker_names [#call] the label `worker` by process number
      def initialize(worker_names:)
        @worker_names = worker_names
        @readings = KernelReadings.new
        @peers = {}
        @requests = []
        @inbox, outside = UNIXSocket.pair(:SEQPACKET)
        @socket = CollectorSocket.new(outside)
      end

      # @return [self]
      def start
        rehearse
        @thread = BackgroundThread.repeat("culet-metrics", "metrics are not collected") { step }
        self
      end

      # @return [void]
      def stop
        @thread.kill.join
        close
        @socket.close
      end

      # @return [Collector] where the process goes on without its threads
      def restart = start

      # In a forked child.
      #
      # @return [ForkedProcess, nil]
      def join
        close
        ForkedProcess.join(@socket)
      end

      # @return [String, nil] nil if the collector has been stopped
      # @raise [Culet::Error] when the collector does not answer in time, or cannot
      def text = @socket.text

      protected

      attr_reader :inbox

      private

      # Runs the code of forked processes, which fills its inline caches, some 0.4 MB, before the fork shares them.
      def rehearse
        collector = Collector.new(worker_names: nil)
        inbox = collector.inbox.dup
        forked = collector.join
        _, _, _, control = inbox.recvmsg(scm_rights: true)
        control.unix_rights.each do |socket|
          socket.sendmsg_nonblock(CollectorSocket::QUESTION)
          socket.recv(ANSWER_BYTES)
          socket.close
        end
        forked.stop
        inbox.close
      end

      def close = [@inbox, *@peers.keys].each(&:close)

      def step
        listen(nil)
        serve if @requests.any?
      end

      # Receives the next messages.
      #
      # @param seconds [Numeric, nil] how long to wait; nil: any time
      # @return [Boolean] whether a message came
      def listen(seconds)
        ready, = IO.select([@inbox, *@peers.keys], nil, nil, seconds)
        ready.to_a.each { |socket| socket == @inbox ? admit : answer(socket) }
        !ready.nil?
      end

      def admit
        message, _, _, *controls = @inbox.recvmsg_nonblock(64, 0, 256, scm_rights: true, exception: false)
        return if message == :wait_readable

        controls.flat_map { |control| control.unix_rights.to_a }.each do |socket|
          next @requests << socket unless message == CollectorSocket::PROCESS

          pid, = socket.getsockopt(:SOCKET, :PEERCRED).unpack("iII")
          @peers[socket] = Peer.new(pid, socket, false, [], nil)
        end
      end

      def answer(socket)
        text, = socket.recvmsg_nonblock(ANSWER_BYTES, exception: false)
        return if text == :wait_readable
        return forget(socket) if text.nil? || text.empty?

        peer = @peers.fetch(socket)
        peer.asked = false
        return if text == CollectorSocket::FAILURE # what it has reported before is shown, with its age

        samples = Report.parse(text) or return forget(socket)
        peer.samples = samples
        peer.at = Clock.now
      rescue SystemCallError
        forget(socket)
      end

      def forget(socket)
        @peers.delete(socket)
        socket.close
      end

      # One scrape answers all requests that have come. If it fails, their sockets are closed without an answer.
      def serve
        text = Exposition.text(collect)
        @requests.each { |socket| send_text(socket, text) }
      ensure
        @requests.each(&:close)
        @requests.clear
      end

      def collect
        ask
        deadline = Clock.now + WAIT
        own = Metrics.report.samples
        listen([deadline - Clock.now, 0].max) while @peers.each_value.any?(&:asked) && Clock.now < deadline
        [[{}, Group.samples], *processes(own)]
      end

      def ask
        @peers.each_value.to_a.each do |peer|
          next if peer.asked # its last question is unanswered

          sent = peer.socket.sendmsg_nonblock(CollectorSocket::QUESTION, exception: false)
          peer.asked = true unless sent == :wait_writable
        rescue SystemCallError
          forget(peer.socket) # it has ended
        end
      end

      def processes(own)
        names = @worker_names.call
        reports = @peers.each_value.to_h { |peer| [peer.pid, [peer.samples, peer.at]] }
        reports[::Process.pid] = [own, Clock.now]
        @readings.call(reports.keys).map do |pid, readings|
          samples, at = reports.fetch(pid)
          age = at ? [["culet_process_report_age_seconds", {}, (Clock.now - at).round(3)]] : []
          [{ "pid" => pid.to_s, "worker" => worker(pid, names) }.compact, readings + age + samples]
        end
      end

      def worker(pid, names)
        return names[pid]&.to_s unless pid == ::Process.pid

        "master" unless names.empty?
      end

      def send_text(socket, text)
        deadline = Clock.now + SEND
        rest = CollectorSocket.pack(text)
        until rest.empty?
          sent = socket.write_nonblock(rest, exception: false)
          next rest = rest.byteslice(sent..) unless sent == :wait_writable
          break unless socket.wait_writable([deadline - Clock.now, 0].max)
        end
      rescue SystemCallError
        nil # the receiver has closed the socket
      ensure
        socket.close
      end
    end
  end
end
