# frozen_string_literal: true

module Culet
  module Profile
    # Rack middleware: `use Culet::Profile::Rack` in config.ru labels what a request allocates with endpoint, such as
    # "GET /issues/:id". Parts of the path that look like an identifier are replaced, so that the number of endpoints
    # stays small. What a response allocates while the server reads a streamed body has no label.
    class Rack
      # Endpoints with a name of their own: paths come from outside.
      LIMIT = 1000
      # Parts of a path; further ones are left out.
      PARTS = 8
      # What becomes ":id": parts with a digit, and long ones.
      IDENTIFIER = /\d|.{33}/m
      METHODS = %w[GET POST PUT PATCH DELETE HEAD OPTIONS].freeze
      private_constant :LIMIT, :PARTS, :IDENTIFIER, :METHODS

      # @param app [#call] a Rack application
      def initialize(app)
        @app = app
        @endpoints = {}
      end

      # @param env [Hash] of a request
      # @return [Array] the application's response
      def call(env) = Profile.label(endpoint: endpoint(env)) { @app.call(env) }

      private

      # @return [String] "other" beyond the limit
      def endpoint(env)
        name = name(env["REQUEST_METHOD"], "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}")
        return name if @endpoints.key?(name)
        return "other" if @endpoints.size >= LIMIT

        @endpoints[name] = true
        name
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
