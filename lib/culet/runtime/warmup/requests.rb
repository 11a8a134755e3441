# frozen_string_literal: true

require "stringio"
require "timeout"
require "uri"

module Culet
  module Warmup
    # Closes connections that children must not inherit: those of Active Record. Other libraries' connections must be
    # closed in a hook of the server.
    module Connections
      # From this version on, clear_all_connections! needs :all to clear the connections of all roles.
      ALL_ROLES_SINCE = "7.1"
      private_constant :ALL_ROLES_SINCE

      # @return [true, nil] nil without Active Record
      def self.close
        return unless defined?(::ActiveRecord::Base)

        handler = ::ActiveRecord::Base.connection_handler
        all_roles? ? handler.clear_all_connections!(:all) : handler.clear_all_connections!
        true
      end

      def self.all_roles? = ::ActiveRecord.gem_version >= Gem::Version.new(ALL_ROLES_SINCE)
      private_class_method :all_roles?
    end

    # Sends GET requests to a Rack application in this process, without a server: templates are compiled and caches
    # filled once instead of in every forked worker. A failed request is a warning.
    class Requests
      # Time limit of all requests, so that an endless page does not keep a server from starting.
      SECONDS = 60
      # https and localhost, for applications that redirect http or restrict hosts; a URL may have others.
      ORIGIN = URI("https://localhost/").freeze
      HEADERS = { "HTTP_ACCEPT" => "text/html,application/xhtml+xml,*/*;q=0.8", "HTTP_ACCEPT_LANGUAGE" => "en",
                  "HTTP_USER_AGENT" => "culet warm-up", "REMOTE_ADDR" => "127.0.0.1" }.freeze

      # Not a StandardError, which an application might rescue.
      class Overdue < Exception; end # rubocop:disable Lint/InheritException
      private_constant :ORIGIN, :HEADERS, :Overdue

      # @param addresses [Array<String>] paths, with or without a query, or URLs
      # @return [Array<String>] the addresses
      # @raise [ArgumentError] for an invalid address
      def self.checked(addresses) = addresses.each { |address| uri(address) }

      # @return [URI::HTTP]
      # @raise [ArgumentError] for an invalid address
      def self.uri(address)
        found = ORIGIN.merge(address) if address.to_s.match?(%r{\A(?:/|https?://)})
        return found if found.is_a?(URI::HTTP) && found.host.to_s != ""

        raise ArgumentError, no_address(address)
      rescue URI::Error
        raise ArgumentError, no_address(address)
      end

      def self.no_address(address)
        "#{address.inspect} is not an address for the warm-up; give a path such as \"/issues\", or http://..."
      end
      private_class_method :no_address

      # @param addresses [Array<String>] paths or URLs
      # @param app [#call, nil] a Rack application; nil: Rails.application
      # @param seconds [Numeric] for all of them
      # @raise [ArgumentError] for an invalid address
      def initialize(addresses, app: nil, seconds: SECONDS)
        @uris = addresses.map { |address| self.class.uri(address) }
        @app = app || (::Rails.application if defined?(::Rails) && ::Rails.respond_to?(:application))
        @seconds = seconds
      end

      # @return [Array<String>] warnings, a sentence each
      def call
        return ["no application for the warm-up requests: give `app:`, or call it after Rails is loaded"] unless @app

        problems = []
        Timeout.timeout(@seconds, Overdue) { @uris.each { |uri| problems << request(uri) } }
        problems.compact
      rescue Overdue
        problems.compact << "the warm-up requests were stopped after #{@seconds} s, at #{@uris[problems.size]}"
      end

      private

      def request(uri)
        status, _headers, body = @app.call(environment(uri))
        read(body)
        "the request for #{uri} returned status #{status}" unless (200..399).cover?(status.to_i)
      rescue StandardError, ScriptError, SystemStackError => e
        "the request for #{uri} failed: #{e.class}: #{e.message.lines.first.to_s.strip}"
      end

      # A streaming body (Rack 3) has no `each`; it writes to a socket, which does not exist here.
      def read(body)
        body.each { |part| part } if body.respond_to?(:each)
      ensure
        body.close if body.respond_to?(:close)
      end

      # The environment of the Rack specification; written here because Rack itself may not be loaded.
      def environment(uri)
        path = uri.path.empty? ? "/" : uri.path
        { **HEADERS, "REQUEST_METHOD" => "GET",
          "SCRIPT_NAME" => "", "PATH_INFO" => path, "QUERY_STRING" => uri.query.to_s,
          "SERVER_NAME" => uri.host, "SERVER_PORT" => uri.port.to_s, "SERVER_PROTOCOL" => "HTTP/1.1",
          "HTTP_HOST" => host(uri), "REQUEST_URI" => uri.request_uri, "REQUEST_PATH" => uri.path,
          **(uri.scheme == "https" ? { "HTTPS" => "on" } : {}),
          "rack.url_scheme" => uri.scheme, "rack.version" => [1, 6],
          "rack.input" => StringIO.new("".b), "rack.errors" => $stderr, "rack.multithread" => true,
          "rack.multiprocess" => true, "rack.run_once" => false, "rack.hijack?" => false }
      end

      def host(uri) = uri.port == uri.default_port ? uri.host : "#{uri.host}:#{uri.port}"
    end
  end
end
