# frozen_string_literal: true

require_relative "../culet"
require_relative "runtime/warmup/connections"
require_relative "runtime/warmup/record"
require_relative "runtime/warmup/requests"
require_relative "runtime/warmup/steps"

module Culet
  # Makes a process ready for being forked, once it has loaded what its children will share: what its first requests
  # would build in every child is built once, what is garbage is gone, what is not is old, so that the children's
  # collections leave it alone, and free memory is the kernel's.
  #
  #   Requests     pages of the application that are asked for beforehand
  #   Connections  what those opened and no child may inherit
  #   Steps        what is done to the heap then
  #   Record       what was done, and what it took
  module Warmup
    class << self
      # The addresses that each warm-up asks for, unless it is told others: for a server's configuration file. Empty as
      # long as nobody names any, since only who knows the application knows which pages may be asked for unseen.
      #
      # @return [Array<String>] as Requests takes them
      def requests = @requests ||= []

      # @param addresses [Array<String>, String, nil]
      # @raise [ArgumentError] where one is no address
      def requests=(addresses)
        @requests = Requests.checked(Array(addresses))
      end

      # @param requests [Array<String>] see Requests
      # @param app [#call, nil] a Rack application; nil: Rails.application, where there is one
      # @param steps [Array<Symbol>, nil] names of Steps; nil: Steps.default
      # @yield before the steps, for whatever else the application can settle before it is forked
      # @return [Hash] as Culet.warmup
      # @raise [ArgumentError] for an unknown step or address
      def call(requests: self.requests, app: nil, steps: nil, &block)
        steps = Steps.checked(steps || Steps.default)
        record = Record.new
        serve(requests, app, record)
        record.of("block", &block) if block
        steps.each { |name| record.of(name.to_s) { Steps.make(name) } }
        record.to_h
      end

      # The requests alone, for a server that closes what is open (the user's own hooks do) before it warms up.
      #
      # @return [Hash] as Culet.warmup
      def serve_requests(requests: self.requests, app: nil) = Record.new.tap { |record| serve(requests, app, record) }.to_h

      private

      def serve(requests, app, record)
        return if requests.empty?

        record.of("requests") { Requests.new(requests, app: app).call.each { |sentence| warn("culet: #{sentence}") } }
        record.of("connections") { Connections.close }
      end
    end
  end
end
