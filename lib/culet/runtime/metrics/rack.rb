# frozen_string_literal: true

module Culet
  module Metrics
    # Rack middleware: `use Culet::Metrics::Rack` in config.ru serves the metrics at /metrics: those of all processes of
    # a cluster whose master has called Culet::Metrics.start, else those of the answering process. All clients of the
    # application can read them.
    class Rack
      # @param app [#call] a Rack application
      # @param path [String]
      def initialize(app, path: Server::PATH)
        @app = app
        @path = path
      end

      # @param env [Hash] of a request
      # @return [Array] the response
      def call(env)
        return @app.call(env) unless env["PATH_INFO"] == @path && %w[GET HEAD].include?(env["REQUEST_METHOD"])

        respond(env, 200, CONTENT_TYPE, Metrics.text)
      rescue Error => e
        respond(env, 503, "text/plain; charset=utf-8", "#{e.message}\n")
      end

      private

      def respond(env, status, type, text)
        [status, { "content-type" => type, "content-length" => text.bytesize.to_s },
         env["REQUEST_METHOD"] == "HEAD" ? [] : [text]]
      end
    end
  end
end
