# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # A Falcon that keeps its memory limit: of the workers, the one with the most private memory accepts no more
    # connections, finishes its requests and ends, and Falcon starts another one. SIGINT, by which Falcon's own
    # supervisor ends a worker, interrupts requests that wait.
    #
    # Rack middleware. All of a worker's requests run in the fibers of one thread, so the counts need no lock.
    class Falcon
      # A request may have been sent that this process has not read: so long no request must run, in seconds.
      QUIET = 1.0
      private_constant :QUIET

      FINISHED = "rack.response_finished"
      private_constant :FINISHED

      # @param application [#call]
      def initialize(application)
        @application = application
        @running = 0
      end

      # @param environment [Hash]
      # @return [Array]
      def call(environment)
        return @application.call(environment) unless Limit.active? && ::Async::Task.current?

        begin_worker
        Limit.gate.pass
        finish_later(environment) { @application.call(environment) }
      end

      private

      def begin_worker
        return if @pid == ::Process.pid

        @pid = ::Process.pid
        Worker.begin("ends when its requests have ended")
      end

      # A request runs until its response is written.
      def finish_later(environment)
        @running += 1
        environment.fetch(FINISHED) { return finish_with_body(*yield) } << ->(*) { finish(environment) }
        yield.tap { |_, headers, _| close_connection(headers) }
      end

      def finish
      end
    end
  end
end
