# frozen_string_literal: true

require "socket"
require_relative "../../errors"
require_relative "../../system/background_thread"
require_relative "../../system/clock"
require_relative "../../system/http_access"
require_relative "address"
require_relative "connection"

module Culet
  module Metrics
    # Answers GET /metrics at an address, in one thread: one request per connection, many connections at a
    # time. A slow connection does not delay others; it is dropped after some seconds, or when too many are open.
    class Server
      PATH = "/metrics"
      # Connections that are open at a time.
      CONNECTIONS = 64
      # Time limit in seconds for a request to arrive, and for the answer to be received.
      SECONDS = 10
      private_constant :CONNECTIONS, :SECONDS

      REASONS = { 200 => "OK", 400 => "Bad Request", 401 => "Unauthorized", 403 => "Forbidden", 404 => "Not Found",
                  405 => "Method Not Allowed", 503 => "Service Unavailable" }.freeze
      private_constant :REASONS

      # @param address [String, Integer] see Address
      # @param token [String, nil] the bearer token of requests; nil: none
      # @param hosts [Array<String>] names by which clients without a token may call this machine, beside its addresses
      # @param seconds [Numeric] for a request to arrive, and for the answer to be received
      # @return [Server] started
      # @raise [ArgumentError] for an invalid address, or an empty token
      # @raise [SystemCallError, SocketError] when the address cannot be used
      def self.open(address, token: nil, hosts: [], seconds: SECONDS)
        new(Address.parse(address), token: token, hosts: hosts, seconds: seconds).tap(&:start)
      end

      # @param token [String, nil]
      def initialize(address, token:, hosts:, seconds:)
        raise ArgumentError, "the token (CULET_METRICS_TOKEN) is empty" if token && token.scrub("").strip.empty?

        @token = token&.b&.strip
        @hosts = [*hosts, *address.host]
        @address = address
        @seconds = seconds
        @socket = address.listen
        @connections = {}
      end

      # @return [void]
      def start
        @thread = BackgroundThread.repeat("culet-metrics-http", "metrics are not served") { step }
      end

      # @return [void]
      def stop
        @thread.kill.join
        abandon
        @address.remove
      end

      # Closes the descriptors in a forked child, which must not hold the port.
      def abandon = [@socket, *@connections.keys].each(&:close)

      private

      # Serves the sockets that are ready. Requests that arrive together get one scrape.
      def step
        writing, reading = @connections.values.partition(&:answering?)
        ready = IO.select([@socket, *reading.map(&:socket)], writing.map(&:socket), nil, left)
        receiving, sending, = ready || [[], []]
        @text = nil
        (receiving - [@socket]).each { |socket| advance(@connections[socket]) { |one| receive(one) } }
        sending.each { |socket| advance(@connections[socket], &:send_part) }
        drop_late
        accept if receiving.include?(@socket)
      end

      # Seconds until the first deadline; nil: none.
      def left = @connections.each_value.map(&:deadline).min&.then { |deadline| [deadline - Clock.now, 0].max }

      def advance(connection)
        drop(connection) if yield connection
      rescue SystemCallError, IOError
        drop(connection) # the client has gone
      end

      def receive(connection)
        request = connection.receive or return
        connection.answer(response(request), Clock.now + @seconds)
        connection.send_part
      end

      def drop(connection)
        @connections.delete(connection.socket)
        connection.close
      end

      def drop_late
        time = Clock.now
        late = @connections.each_value.select { |one| one.deadline <= time }
        late.each { |one| drop(one) }
      end

      def accept
        socket = @socket.accept_nonblock(exception: false)
        return if socket == :wait_readable

        make_room
        @connections[socket] = Connection.new(socket, Clock.now + @seconds)
      rescue Errno::ECONNABORTED, Errno::EPROTO, Errno::ENOTCONN
        socket&.close # the client has gone
      end

      # Drops the oldest connection of the client with the most, so that one client cannot exclude others.
      def make_room
        return if @connections.size < CONNECTIONS

        drop(@connections.each_value.group_by(&:peer).each_value.max_by(&:size).first)
      end

      def response(request)
        verb, target, version = request.lines.first.split
        return answer(400, "this is not an HTTP request\n") unless version&.start_with?("HTTP/1.")

        refusal = refusal(request) and return refusal
        return answer(405, "only GET and HEAD\n", "allow: GET, HEAD\r\n") unless %w[GET HEAD].include?(verb)
        return answer(404, "the metrics are at #{PATH}\n") unless target[/\A[^?]*/] == PATH

        answer(200, @text ||= Metrics.text, body: verb == "GET", type: CONTENT_TYPE)
      rescue Error, SystemCallError => e
        answer(503, "#{e.message}\n")
      end

      # With a token, the Host header need not be checked: a browser cannot know the token.
      #
      # @return [String, nil] an answer without metrics
      def refusal(request)
        if @token
          given = header(request, "authorization").to_s[/\A\s*bearer +(\S+)\s*\z/i, 1].to_s
          return if HTTPAccess.same_secret?(given, @token)

          answer(401, "these metrics need a token: authorization: Bearer TOKEN\n", "www-authenticate: Bearer\r\n")
        elsif (host = header(request, "host")) && !HTTPAccess.own_host?(host, names: @hosts)
          answer(403, "the name in this address is not known here; add it to CULET_METRICS_HOSTS, or set " \
                      "CULET_METRICS_TOKEN\n")
        end
      end

      def header(request, name) = request[/^#{name}:([^\r\n]*)/i, 1]

      def answer(status, text, headers = "", body: true, type: "text/plain; charset=utf-8")
        "HTTP/1.1 #{status} #{REASONS.fetch(status)}\r\ncontent-type: #{type}\r\n" \
          "content-length: #{text.bytesize}\r\n#{headers}connection: close\r\n\r\n#{text if body}"
      end
    end
  end
end
