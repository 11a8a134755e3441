# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "../../errors"
require_relative "../../system/background_thread"

module Culet
  module Metrics
    # Answers GET /metrics on a port of its own, in one thread: one request per connection, one connection at a time.
    class Server
      # The address if only a port is given: other hosts have no access.
      HOST = "127.0.0.1"
      PATH = "/metrics"
      REQUEST_BYTES = 16 << 10
      # For a request to arrive, and for the answer to be received, in seconds.
      PATIENCE = 2
      private_constant :REQUEST_BYTES, :PATIENCE

      REASONS = { 200 => "OK", 400 => "Bad Request", 404 => "Not Found", 405 => "Method Not Allowed",
                  503 => "Service Unavailable" }.freeze
      private_constant :REASONS

      class << self
        # @param address [String, Integer] a port, or "HOST:PORT", e.g. "[::1]:9394"
        # @return [Server] that answers
        # @raise [ArgumentError] for another address
        # @raise [SystemCallError, SocketError] when the port cannot be used
        def open(address)
          match = /\A(?:(?:\[(?<ip>[\h:.]+)\]|(?<host>[^:\[\]]+)):)?(?<port>\d{1,5})\z/.match(address.to_s)
          port = match && match[:port].to_i
          raise ArgumentError, "#{address.inspect} is not a port or HOST:PORT" unless port&.between?(1, 65_535)

          new(match[:ip] || match[:host] || HOST, port).tap(&:start)
        end
      end

      # @param host [String]
      # @param port [Integer]
      def initialize(host, port)
        @socket = TCPServer.new(host, port)
      end

      # @return [void]
      def start
        @thread = BackgroundThread.start("culet-metrics-http") { run }
      end

      # @return [void]
      def stop
        @thread.kill.join
        abandon
      end

      # In a forked child, which has neither the thread nor the port.
      #
      # @return [void]
      def abandon = @socket.close

      private

      def run
        loop { serve(@socket.accept) }
      rescue StandardError => e
        warn("culet: metrics are not served any more: #{e.class}: #{e.message}")
        abandon
      end

      def serve(client)
        request = read(client)
        write(client, response(request)) if request
        client.shutdown # a process that is forked meanwhile has the socket too
      rescue SystemCallError, IOError
        nil # the client has gone
      ensure
        client.close
      end

      # @return [String, nil] the head of the request; nil if it does not arrive in time, or is too long
      def read(client)
        text = +""
        deadline = now + PATIENCE
        until text.include?("\r\n\r\n") || text.include?("\n\n")
          part = client.read_nonblock(REQUEST_BYTES, exception: false)
          text << part if part.is_a?(String)
          return if part.nil? || text.bytesize > REQUEST_BYTES
          return if part == :wait_readable && !client.wait_readable([deadline - now, 0].max)
        end
        text.b
      end

      def response(request)
        verb, target, version = request.lines.first.split
        return answer(400, "this is not an HTTP request\n") unless version&.start_with?("HTTP/1.")
        return answer(405, "only GET and HEAD\n", "allow: GET, HEAD\r\n") unless %w[GET HEAD].include?(verb)
        return answer(404, "the metrics are at #{PATH}\n") unless target[/\A[^?]*/] == PATH

        format = Metrics.negotiate(request[/^accept:([^\r\n]*)/i, 1])
        answer(200, Metrics.text(format: format), body: verb == "GET", type: CONTENT_TYPES.fetch(format))
      rescue Error => e
        answer(503, "#{e.message}\n")
      end

      def answer(status, text, headers = "", body: true, type: "text/plain; charset=utf-8")
        "HTTP/1.1 #{status} #{REASONS.fetch(status)}\r\ncontent-type: #{type}\r\n" \
          "content-length: #{text.bytesize}\r\n#{headers}connection: close\r\n\r\n#{text if body}"
      end

      def write(client, text)
        deadline = now + PATIENCE
        until text.empty?
          sent = client.write_nonblock(text, exception: false)
          next text = text.byteslice(sent..) unless sent == :wait_writable
          return unless client.wait_writable([deadline - now, 0].max)
        end
      end

      def now = ::Process.clock_gettime(::Process::CLOCK_MONOTONIC)
    end
  end
end
