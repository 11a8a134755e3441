# frozen_string_literal: true

require "set"
require "socket"
require_relative "../foreign_file"

module Culet
  module Agent
    # Finds the socket of a process's agent in /proc and connects to it. Any process can take a name that looks like an
    # agent's; SO_PEERCRED identifies the listener.
    class Endpoint
      # /proc/PID/net/unix: Num RefCount Protocol Flags Type St Inode Path
      LISTENS = 0x10000
      # Most sockets with an agent's name that are tried.
      MOST_NAMES = 1000
      private_constant :LISTENS, :MOST_NAMES

      # @param process [Processes::Live]
      def initialize(process)
        @process = process
        @pid = process.pid
      end

      # @return [Socket, nil] a connection to the process itself; nil: it does not listen
      # @raise [Errno::EAGAIN] when its queue is full
      # @raise [SystemCallError] when the connection is refused
      def connect
        refusals = []
        names.flat_map { |name| addresses(name) }.each do |address|
          socket = open(address) or next
          return socket if itself?(socket)

          socket.close
        rescue SystemCallError => e
          refusals << e # perhaps another process's socket
        end
        raise refusals.first if refusals.any?
      end

      # @return [Boolean] whether an agent exists, reachable or not
      def listens? = names.any?

      private

      # @return [Array<String>] names of its agent's sockets; abstract names start with "@"
      def names
        own = inodes
        found = sockets.select { |inode, name| pattern.match?(name) && (own.nil? || own.include?(inode)) }
        found.map(&:last).first(MOST_NAMES)
      rescue Errno::ENOENT, Errno::ESRCH, Errno::ENXIO
        [] # the process has ended
      end

      def pattern = %r{\A(?:@culet-agent/#{inner_pid}/|/.*/culet/agent-#{inner_pid}-\d+\z)}

      # Its number in the innermost PID namespace.
      def inner_pid = @inner_pid ||= @process.status_fields["NSpid"].to_s.split.last || @pid

      # @return [Array<Array(Integer, String)>] inode and name of the listening sockets of its network namespace; a name
      #   with a newline can look like another socket
      def sockets
        File.foreach("/proc/#{@pid}/net/unix", encoding: Encoding::BINARY).drop(1).filter_map do |line|
          _, _, _, flags, _, _, inode, name = line.chomp.split(/ +/, 8)
          [inode.to_i, name] if name && flags.hex.anybits?(LISTENS)
        end
      end

      # @return [Set<Integer>, nil] of its sockets; nil: its descriptors may not be read
      def inodes
        Dir.children("/proc/#{@pid}/fd")
           .filter_map { |fd| link("/proc/#{@pid}/fd/#{fd}")[/\Asocket:\[(\d+)\]\z/, 1]&.to_i }.to_set
      rescue Errno::EACCES, Errno::EPERM
        nil
      end

      def link(path)
        File.readlink(path).b
      rescue Errno::ENOENT
        "" # closed meanwhile
      end

      # The path as the process sees it, perhaps in a container, and as this process sees it.
      def addresses(name)
        return [Socket.sockaddr_un("\0#{name.delete_prefix("@")}")] if name.start_with?("@")

        ["/proc/#{@pid}/root#{name}", name]
      end

      def open(address)
        return through(address) if address.start_with?("/")

        connected(address)
      end

      def through(path)
        ForeignFile.find(path, follow: false) do |file, _|
          connected(Socket.sockaddr_un("/proc/self/fd/#{file.fileno}"))
        end
      rescue Errno::ENOENT, Errno::ENOTDIR, Errno::ELOOP
        nil
      end

      # The caller waits for a full queue.
      def connected(address)
        socket = Socket.new(:UNIX, :STREAM)
        socket.connect_nonblock(address)
        socket
      rescue Errno::ECONNREFUSED, Errno::ENOENT, Errno::ENOTSOCK, Errno::EPROTOTYPE
        socket.close
        nil
      rescue SystemCallError
        socket.close
        raise
      end

      # struct ucred: process and user at the time of listen(2). The process number alone may have been reused.
      def itself?(socket)
        pid, uid = socket.getsockopt(:SOCKET, :PEERCRED).unpack("iI")
        pid == @pid && [0, *@process.status_fields["Uid"].to_s.split.map(&:to_i)].include?(uid)
      end
    end
  end
end
