# frozen_string_literal: true

require "socket"

module Culet
  module Metrics
    # The address of the metrics: a port of 127.0.0.1, "HOST:PORT" such as "[::1]:9394", or "unix:/path" of a socket,
    # which the umask and the folder open to users.
    class Address
      # The default host, to which other machines have no access.
      HOST = "127.0.0.1"
      PORT = /\A(?:(?:\[(?<ip>[\h:.]+)\]|(?<host>[^:\[\]]+)):)?(?<port>\d{1,5})\z/
      private_constant :HOST, :PORT

      # @param text [String, Integer]
      # @raise [ArgumentError] for an invalid address
      def self.parse(text)
        known = text.to_s if text.to_s.valid_encoding?
        path = known && known[%r{\Aunix:(/.+)\z}m, 1]
        return new(path: path) if path

        match = PORT.match(known)
        port = match && match[:port].to_i
        raise ArgumentError, "#{text.inspect} is not a port, HOST:PORT or unix:/PATH" unless port&.between?(1, 65_535)

        new(host: match[:ip] || match[:host] || HOST, port: port)
      end

      # @return [String, nil] nil for a path
      attr_reader :host

      # @param host [String, nil]
      # @param port [Integer, nil]
      # @param path [String, nil]
      def initialize(host: nil, port: nil, path: nil)
        @host = host
        @port = port
        @path = path
      end

      # @return [TCPServer, UNIXServer]
      # @raise [SystemCallError, SocketError, ArgumentError] when the address cannot be used
      def listen
        return TCPServer.new(@host, @port) unless @path

        remove_stale
        UNIXServer.new(@path)
      end

      # Removes the name of a socket that this process has closed.
      def remove = @path && remove_stale

      private

      # Removes the socket of a process that has ended. A socket with a listener stays, as does any other
      # file.
      def remove_stale
        stat = File.lstat(@path)
        return unless stat.socket? && stat.owned?

        UNIXSocket.new(@path).close
      rescue Errno::ECONNREFUSED
        File.unlink(@path)
      rescue Errno::ENOENT
        nil
      end
    end
  end
end
