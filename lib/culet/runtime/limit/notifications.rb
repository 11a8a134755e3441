# frozen_string_literal: true

module Culet
  module Limit
    # Descriptors by which the kernel or systemd reports that memory is short. Each is optional: without any of them the
    # usage is read at intervals.
    class Notifications
      # Stalls of 100 ms in any second.
      PRESSURE = "some 100000 1000000"
      # systemd's name for a file that is never pressed.
      NOTHING = File::NULL
      private_constant :PRESSURE, :NOTHING

      # @return [Array<IO>] readable, or in state POLLPRI, when memory is short
      attr_reader :ios

      # @return [Array<String>] names of the notifications in use
      attr_reader :names

      # @param alarm_bytes [Integer, nil] usage from which a control group of version 1 is to report; nil: it is not to,
      #   because the kernel takes 10 to 30 ms to register that, too long for each forked process
      # @param event_descriptor [#call] makes an eventfd
      def initialize(source, alarm_bytes:, event_descriptor:)
        @ios = []
        @names = []
        @kept = []
        add("systemd") { systemd }
        add("pressure") { pressure(source.group.file("memory.pressure")) } if source.group&.version == 2
        return unless alarm_bytes && source.group&.version == 1

        add("threshold") { threshold(source.group, alarm_bytes, event_descriptor.call) }
      end

      # @return [void]
      def close = (@ios + @kept).each(&:close)

      private

      # The kernel's, or a file that the environment names: whatever fails, the usage is read at intervals.
      def add(name)
        io = yield or return

        @ios << io
        @names << name
      rescue SystemCallError, IOError, ArgumentError
        nil
      end

      # systemd's memory pressure protocol: a file, FIFO or socket, and what is to be written into it.
      def systemd
        path = ENV.fetch("MEMORY_PRESSURE_WATCH", nil)
        return if path.nil? || path.empty? || path == NOTHING

        text = ENV.fetch("MEMORY_PRESSURE_WRITE", nil)&.unpack1("m0")
        return connect(path, text) if File.socket?(path)

        File.open(path, (text ? File::RDWR : File::RDONLY) | File::NONBLOCK | File::NOCTTY).tap do |file|
          written(file, text) if text
        end
      end

      def connect(path, text)
        require "socket"
        UNIXSocket.new(path).tap { |socket| written(socket, text) if text }
      end

      def pressure(path)
        File.open(path, File::RDWR | File::NONBLOCK | File::NOCTTY).tap { |file| written(file, "#{PRESSURE}\0") }
      end

      def written(io, text)
        io.syswrite(text)
      rescue SystemCallError
        io.close
        raise
      end

      # cgroup.event_control of version 1: "EVENTFD FILE THRESHOLD".
      def threshold(group, bytes, descriptor)
        event = IO.for_fd(descriptor)
        usage = File.open(group.usage_file)
        File.write(group.file("cgroup.event_control"), "#{event.fileno} #{usage.fileno} #{bytes}")
        @kept << usage
        event
      rescue SystemCallError
        [event, usage].compact.each(&:close)
        raise
      end
    end
  end
end
