# frozen_string_literal: true

require "socket"
require "uri"
require_relative "../../errors"

module Culet
  module Compare
    # The HTTP address of the measured server, on this machine.
    class LoadTarget
      LOOPBACK = /\A(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])\z/i
      private_constant :LOOPBACK

      # @param text [String] e.g. "http://127.0.0.1:3000/posts"
      # @raise [Culet::UsageError] for other addresses than HTTP on this machine
      def self.parse(text)
        uri = URI.parse(text)
        unless uri.instance_of?(URI::HTTP) && uri.host
          raise UsageError, "--url takes an http address such as http://127.0.0.1:3000/, not #{text.inspect}"
        end
        unless uri.host.match?(LOOPBACK)
          raise UsageError, "--url must be an address of this machine (localhost, 127.0.0.1 or [::1]), " \
                            "not #{uri.host}: the load goes to the command after --"
        end

        new(uri)
      rescue URI::InvalidURIError
        raise UsageError, "--url takes an http address such as http://127.0.0.1:3000/, not #{text.inspect}"
      end

      # @param port [Integer]
      # @return [LoadTarget]
      def self.local(port) = new(URI.parse("http://127.0.0.1:#{port}/"))

      # @return [Integer] a free TCP port of the loopback interface
      def self.free_port
        server = TCPServer.new("127.0.0.1", 0)
        server.addr[1]
      ensure
        server&.close
      end

      def initialize(uri)
        @uri = uri
      end

      # @return [Boolean] whether a server accepts connections there
      def answers?
        Socket.tcp(@uri.hostname, @uri.port, connect_timeout: 1) { true }
      rescue SystemCallError, SocketError
        false
      end

      # Requests the page once.
      #
      # @return [Integer, nil] the HTTP status; nil without a response within seconds
      def status
        Socket.tcp(@uri.hostname, @uri.port, connect_timeout: 1) do |socket|
          socket.write("GET #{@uri.request_uri} HTTP/1.1\r\n" \
                       "Host: #{@uri.host}:#{@uri.port}\r\nConnection: close\r\n\r\n")
          socket.readpartial(64)[%r{\AHTTP/1\.\d (\d{3})}, 1]&.to_i if socket.wait_readable(10)
        end
      rescue SystemCallError, SocketError, IOError
        nil
      end

      # @return [String] the URL
      def to_s = @uri.to_s
    end
  end
end

require "io/wait"
