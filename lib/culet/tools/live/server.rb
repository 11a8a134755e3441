# frozen_string_literal: true

require "securerandom"
require_relative "../../errors"
require_relative "../../system/http_access"
require_relative "client"
begin
  require "webrick"
rescue LoadError
  raise Culet::MissingGem.new("a live view", "webrick", instead: "`culet top`")
end

module Culet
  module Live
    # Which connections keep their place. Every user of the machine can connect, so those that have shown the token
    # stay, and of the others the oldest gives way to a new one.
    class Admission
      Connection = Struct.new(:thread, :socket, :known)
      private_constant :Connection

      # @param most [Integer] connections at a time
      def initialize(most:)
        @most = most
        @connections = [] # the oldest first
        @lock = Mutex.new
      end

      # Takes a connection in, which ends with the thread that calls this.
      #
      # @param socket [TCPSocket]
      def enter(socket)
        @lock.synchronize do
          @connections.select! { |one| one.thread.alive? }
          @connections << Connection.new(Thread.current, socket, false)
          give_way if @connections.size > @most
        end
      end

      # The connection of the calling thread has shown the token.
      def keep
        @lock.synchronize { @connections.each { |one| one.known = true if one.thread == Thread.current } }
      end

      private

      # Ends the oldest connection without the token: its thread receives the end of the stream.
      def give_way
        oldest = @connections.find { |one| !one.known } or return
        @connections.delete(oldest)
        oldest.socket.shutdown
      rescue SystemCallError, IOError
        nil # it has ended by itself
      end
    end

    # Serves the page on 127.0.0.1. The address has a token, because other users of the machine
    # can connect too. Requests under another name, or from another page, are refused.
    class Server
      ADDRESS = "127.0.0.1"
      # A comment after so many seconds without a frame shows whether the page is still there.
      BEAT_SECONDS = 10.0
      # Milliseconds until the browser connects again.
      RETRY = 1000
      # Pages that are connected at a time.
      MOST_PAGES = 16
      # Connections, with those that have not sent a request yet.
      MOST_CONNECTIONS = 64
      # Threads of connections: those above, and those that have been told to end.
      MOST_THREADS = 2 * MOST_CONNECTIONS
      REQUEST_SECONDS = 10
      # For requests that are being answered when the server ends.
      END_SECONDS = 0.2
      private_constant :ADDRESS, :BEAT_SECONDS, :RETRY, :MOST_CONNECTIONS, :MOST_THREADS, :REQUEST_SECONDS, :END_SECONDS

      attr_reader :port

      # @param port [Integer] 0: one that the kernel chooses
      # @param notes [#puts] gets a line for each error
      # @param stall_seconds [Float] see Client
      # @raise [Culet::Error] when the port is taken
      def initialize(history:, page:, notes:, port: 0, stall_seconds: Client::STALL_SECONDS)
        @history = history
        @page = page
        @notes = notes
        @stall = stall_seconds
        @token = SecureRandom.urlsafe_base64(24)
        @pages = 0
        @lock = Mutex.new
        @admission = Admission.new(most: MOST_CONNECTIONS)
        listen(port)
      end

      # @return [String] the address of the page
      def url = "http://#{ADDRESS}:#{port}/#{@token}/"

      # @return [Integer] pages that are connected
      def pages = @lock.synchronize { @pages }

      # Answers requests in threads, until `close`.
      def start
        @thread = Thread.new { @server.start }
      end

      # Disconnects all pages and ends.
      def close
        @history.stop
        @server.shutdown
        @thread&.join(END_SECONDS)
      end

      # Answers one request.
      #
      # @param request [WEBrick::HTTPRequest]
      # @param response [WEBrick::HTTPResponse]
      def answer(request, response)
        HEADERS.each { |name, value| response[name] = value }
        path = path_below_token(request)
        return refuse(response, 404, "There is no such page.") unless path && from_here?(request)

        @admission.keep
        return refuse(response, 405, "Only GET is answered.") unless %w[GET HEAD].include?(request.request_method)

        route(path, request, response)
      rescue StandardError => e
        @notes.puts("culet: a request failed: #{e.class}: #{e.message}")
        refuse(response, 500, "The request failed; see the terminal of culet live.")
      end

      HEADERS = { "Cache-Control" => "no-store", "X-Content-Type-Options" => "nosniff",
                  "Referrer-Policy" => "no-referrer", "X-Frame-Options" => "DENY",
                  "Cross-Origin-Resource-Policy" => "same-origin", "Cross-Origin-Opener-Policy" => "same-origin",
                  "Content-Security-Policy" => "default-src 'none'; frame-ancestors 'none'" }.freeze
      private_constant :HEADERS

      # Without descriptors a connection stays in the queue of the kernel, where WEBrick finds it again at once.
      class HTTPServer < WEBrick::HTTPServer
        # Until the next attempt, in seconds.
        REST = 0.2
        private_constant :REST

        private

        # @return [TCPSocket, nil] nil: there is none, or no descriptor for it
        def accept_client(_listener)
          super || sleep(REST).then { nil }
        end
      end
      private_constant :HTTPServer

      # Hands every request to the server, whatever its path and method.
      class Servlet < WEBrick::HTTPServlet::AbstractServlet
        # @param request [WEBrick::HTTPRequest]
        # @param response [WEBrick::HTTPResponse]
        def service(request, response) = @options.first.answer(request, response)
      end
      private_constant :Servlet

      private

      def listen(port)
        # WEBrick logs each refused request; what fails in an answer is reported here.
        log = WEBrick::BasicLog.new(File::NULL, WEBrick::BasicLog::FATAL)
        @server = HTTPServer.new(BindAddress: ADDRESS, Port: port, Logger: log, AccessLog: [],
                                 MaxClients: MOST_THREADS, RequestTimeout: REQUEST_SECONDS,
                                 AcceptCallback: @admission.method(:enter),
                                 DoNotReverseLookup: true, ServerSoftware: "culet")
        @server.mount("/", Servlet, self)
        @port = @server[:Port]
      rescue Errno::EADDRINUSE
        raise Error, "port #{port} is in use; give another one, or leave --port out"
      rescue Errno::EACCES
        raise Error, "port #{port} may not be used without being root; give one above 1023, or leave --port out"
      end

      # @return [String, nil] nil without the right token
      def path_below_token(request)
        _, token, path = request.path.split("/", 3)
        path if path && HTTPAccess.same_secret?(token, @token)
      end

      # A page of elsewhere whose name leads to 127.0.0.1 has another Host; one that fetches from here another Origin.
      def from_here?(request)
        hosts = %w[127.0.0.1 localhost [::1]].map { |name| "#{name}:#{port}" }
        hosts.include?(request["host"]) && [nil, *hosts.map { |host| "http://#{host}" }].include?(request["origin"]) &&
          [nil, "none", "same-origin"].include?(request["sec-fetch-site"])
      end

      def route(path, request, response)
        case path
        when "" then send_page(response)
        when "moments" then stream(request, response)
        else refuse(response, 404, "There is no such page.")
        end
      end

      def send_page(response)
        response["Content-Security-Policy"] = @page.policy
        send_body(response, @page.to_s, "text/html; charset=utf-8")
      end

      def stream(request, response)
        return refuse(response, 503, "Too many pages are open; close one.") unless enter

        response["Content-Type"] = "text/event-stream; charset=utf-8"
        number = request["last-event-id"].to_s[/\A\d{1,12}\z/].to_i
        response.keep_alive = false
        response.body = lambda do |socket|
          send_moments(client(socket), number)
        ensure
          leave
        end
      end

      # An event per frame, whose id is the frame's number, until the page has gone, there are no more frames, or the
      # history is stopped. A page that connects again names the last one it has, and gets those after it.
      def send_moments(client, number)
        client.write("retry: #{RETRY}\n\n")
        while (frames = @history.after(number, BEAT_SECONDS))
          client.write(":\n\n") if frames.empty?
          frames.each { |frame| client.write("id: #{frame.number}\nevent: moment\ndata: #{frame.text}\n\n") }
          number = frames.last.number if frames.any?
        end
        client.write("event: end\ndata: {}\n\n") unless @history.stopped?
      rescue Client::Lost
        nil # the browser connects again if the page is still open
      end

      def enter
        @lock.synchronize { (@pages += 1) if @pages < MOST_PAGES }
      end

      def leave = @lock.synchronize { @pages -= 1 }

      def refuse(response, status, sentence)
        response.status = status
        send_body(response, "#{sentence}\n", "text/plain; charset=utf-8")
      end

      def send_body(response, text, type)
        response["Content-Type"] = type
        response["Content-Length"] = text.bytesize.to_s
        response.body = lambda do |socket|
          client(socket).write(text)
        rescue Client::Lost
          response.keep_alive = false
        end
      end

      def client(socket) = Client.new(socket, stall_seconds: @stall)
    end
  end
end
