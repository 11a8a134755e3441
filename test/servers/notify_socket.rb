# frozen_string_literal: true

require "socket"

# What a service sends to its service manager (sd_notify(3)), and the process that sent it, as the kernel tells.
class NotifySocket
  # pid, uid, gid
  CREDENTIALS = "iII"
  private_constant :CREDENTIALS

  # @return [String] for NOTIFY_SOCKET
  attr_reader :path

  # @param folder [String] for the socket
  def initialize(folder)
    @path = File.join(folder, "notify.socket")
    @socket = Socket.new(:UNIX, :DGRAM)
    @socket.setsockopt(:SOCKET, :PASSCRED, true)
    @socket.bind(Addrinfo.unix(@path, :DGRAM))
    @messages = []
  end

  # @return [Array<Array(String, Integer)>] each line so far and its sender
  def messages
    while (message = @socket.recvmsg_nonblock(exception: false)) != :wait_readable
      text, _, _, *controls = message
      credentials = controls.find { |control| control.cmsg_is?(:SOCKET, :CREDENTIALS) }
      @messages.concat(text.lines(chomp: true).map { |line| [line, credentials.data.unpack1(CREDENTIALS)] })
    end
    @messages
  end

  def close = @socket.close
end
