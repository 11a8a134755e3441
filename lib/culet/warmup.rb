# frozen_string_literal: true

require_relative "../culet"
return if Culet::Native.another_copy?(__FILE__, "culet/warmup")

require_relative "runtime/warmup/requests"
require_relative "runtime/warmup/record"
require_relative "runtime/warmup/steps"

module Culet
  # Prepares a process for forking: data structures that first requests build are built once, garbage is collected, the
  # remaining objects are old, so that collections in the children do not write to them, and free memory is returned.
  #
  #   Requests     sends requests to the application
  #   Connections  closes connections that children must not inherit
  #   Steps        the steps on the heap
  #   Record       the steps that ran, and their cost
  module Warmup
    class << self
      # The requests of every warm-up, to be set in the configuration of the server. The default is none, because only
      # the application's author knows which pages are safe to request.
      #
      # @return [Array<String>] paths or URLs
      def requests = @requests ||= []

      # @param addresses [Array<String>, String, nil] paths or URLs
      # @raise [ArgumentError] for an invalid address
      def requests=(addresses)
        @requests = Requests.checked(Array(addresses))
      end

      # @param requests [Array<String>] see Requests
      # @param app [#call, nil] a Rack application; nil: Rails.application, where there is one
      # @param steps [Array<Symbol>, nil] names of Steps; nil: Steps.default
      # @yield further preparation, before the steps
      # @return [Hash] as Culet.warmup
      # @raise [ArgumentError] for an unknown step or address
      def call(requests: self.requests, app: nil, steps: nil, &block)
        steps = Steps.checked(steps || Steps.default)
        record = Record.new
        serve(requests, app, record)
        record.of("block", &block) if block
        steps.each { |name| record.of(name.to_s) { Steps.make(name) } }
        Culet.send(:mark, "warmup") if Culet.native?
        record.to_h
      end

      # The requests alone, for a server whose own hooks close connections before the other steps.
      #
      # @param requests [Array<String>] paths or URLs
      # @param app [#call, nil] a Rack application; nil: Rails.application
      # @return [Hash] as Culet.warmup
      def serve_requests(requests: self.requests, app: nil)
        Record.new.tap { |record| serve(requests, app, record) }.to_h
      end

      private

      def serve(requests, app, record)
        return if requests.empty?

        record.of("requests") { Requests.new(requests, app: app).call.each { |sentence| warn("culet: #{sentence}") } }
        record.of("connections") { Connections.close }
      end
    end
  end
end
