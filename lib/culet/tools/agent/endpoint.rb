# frozen_string_literal: true

require "set"
require "socket"

module Culet
  module Agent
    # Where a process's agent listens (ext/culet/agent/socket.h): found in what the kernel says of the process's sockets, and
    # connected to. Anybody can take a name that looks like an agent's; who listens is known by SO_PEERCRED.
    class Endpoint
      # /proc/PID/net/unix: Num RefCount Protocol Flags Type St Inode Path
      LISTENS = 0x10000
      # So many sockets of an agent's name are tried; where the process's descriptors may be seen, of its own.
      MOST_NAMES = 1000
      # open(2)'s O_PATH: the file is not opened, only found.
      O_PATH = 0o10000000
      private_constant :LISTENS, :MOST_NAMES, :O_PATH

      # @param process [Processes::Live]
      def initialize(process)
        @process = process
        @pid = process.pid
      end

      # @return [Socket, nil] a connection to the process itself; nil: it does not listen
      # @raise [Errno::EAGAIN] when too many are waiting there
      # @raise [SystemCallError] when it may not be connected to
      def connect
        refusals = []
        names.flat_map { |name| addresses(name) }.each do |address|
          socket = open(address) or next
          return socket if itself?(socket)

          socket.close
        rescue SystemCallError => e
          refusals << e # this need not be its own
        end
        raise refusals.first if refusals.any?
      end

      # @return [Boolean] whether there is an agent, which need not be in reach
      def listens? = names.any?

      private

      # @return [Array<String>] what its agent's sockets are called, "@" at the start of abstract ones
      def names
        own = inodes
        sockets.select { |inode, name| pattern.match?(name) && (own.nil? || own.include?(inode)) }.map(&:last).first(MOST_NAMES)
      end

      def pattern = %r{\A(?:@culet-agent/#{inner_pid}/|/.*/culet/agent-#{inner_pid}-\d+\z)}

      # Its number where it lives: that of the innermost of its PID namespaces.
      def inner_pid = @inner_pid ||= @process.status_fields["NSpid"].to_s.split.last || @pid

      # @return [Array<Array(Integer, String)>] inode and name of what listens in its network namespace. A name that has a
      #   line's end in it can seem to be another socket's.
      def sockets
        File.foreach("/proc/#{@pid}/net/unix", encoding: Encoding::BINARY).drop(1).filter_map do |line|
          _, _, _, flags, _, _, inode, name = line.chomp.split(/ +/, 8)
          [inode.to_i, name] if name && flags.hex.anybits?(LISTENS)
        end
      end

      # @return [Set<Integer>, nil] of its sockets; nil: its descriptors may not be seen
      def inodes
        Dir.children("/proc/#{@pid}/fd").filter_map { |fd| link("/proc/#{@pid}/fd/#{fd}")[/\Asocket:\[(\d+)\]\z/, 1]&.to_i }.to_set
      rescue Errno::EACCES, Errno::EPERM
        nil
      end

      def link(path)
        File.readlink(path)
      rescue Errno::ENOENT
        "" # closed meanwhile
      end

      # Of a path as the process sees it, which may be one of a container; a link there leads nowhere.
      def addresses(name)
        return [Socket.sockaddr_un("\0#{name.delete_prefix("@")}")] if name.start_with?("@")

        ["/proc/#{@pid}/root#{name}", name]
      end

      def open(address)
        return through(address) if address.start_with?("/")

        connected(address)
      end

      def through(path)
        File.open(path, O_PATH | File::NOFOLLOW) { |file| connected(Socket.sockaddr_un("/proc/self/fd/#{file.fileno}")) }
      rescue Errno::ENOENT, Errno::ENOTDIR, Errno::ELOOP
        nil
      end

      # A queue that is full is the caller's to wait for.
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

      # struct ucred: the listener's process and user as they were when it began to listen. A number alone could be one that
      # was used before.
      def itself?(socket)
        pid, uid = socket.getsockopt(:SOCKET, :PEERCRED).unpack("iI")
        pid == @pid && [0, *@process.status_fields["Uid"].to_s.split.map(&:to_i)].include?(uid)
      end
    end
  end
end
