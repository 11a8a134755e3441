# frozen_string_literal: true

require_relative "endpoints"

module Culet
  module Profile
    # Rack middleware: `use Culet::Profile::Rack` in config.ru gives allocations of a request the label endpoint: the
    # route, once Rails or Sinatra has found one for such a path, else the path, such as "GET /issues/:id". Parts of the
    # path that look like an identifier are replaced, so that the number of endpoints stays small (see Endpoints).
    # Allocations while the server reads a streamed body have no label.
    class Rack
      # Maximum number of parts of a path in a label.
      PARTS = 8
      # Parts that become ":id": with a digit, or long.
      IDENTIFIER = /\d|.{33}/m
      METHODS = %w[GET POST PUT PATCH DELETE HEAD OPTIONS].freeze
      private_constant :PARTS, :IDENTIFIER, :METHODS

      # @param app [#call] a Rack application
      def initialize(app)
        @app = app
        @endpoints = Endpoints.new
      end

      # @param env [Hash] of a request
      # @return [Array] the application's response
      def call(env)
        path = name(env["REQUEST_METHOD"], "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}")
        response = Profile.label(endpoint: @endpoints.label(path)) { @app.call(env) }
        missing?(response) ? @endpoints.missing(path) : @endpoints.found(path, route(env))
        response
      end

      private

      def missing?(response) = response.is_a?(Array) && response.first == 404

      # The application changes SCRIPT_NAME and PATH_INFO, and adds its route.
      def route(env)
        controller, action = env["action_dispatch.request.path_parameters"]&.values_at(:controller, :action)
        controller && action ? "#{controller}##{action}" : env["sinatra.route"]
      end

      def name(method, path)
        parts = path.b.split("/").drop(1)
        parts = parts.first(PARTS).push("...") if parts.size > PARTS
        parts.map! { |part| IDENTIFIER.match?(part) ? ":id" : part }
        "#{METHODS.include?(method) ? method : "OTHER"} /#{parts.join("/")}"
      end
    end
  end
end
