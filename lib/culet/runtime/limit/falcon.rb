# frozen_string_literal: true

require_relative "worker"

module Culet
  module Limit
    # A Falcon that keeps its memory limit: the worker with the most private memory accepts no more connections,
    # finishes its requests and ends, and Falcon starts another one. SIGINT, by which Falcon ends a worker, interrupts
    # requests that wait.
    #
    # Rack middleware. All requests of a worker run in the fibers of one thread, so the counts need no lock.
    class Falcon
      # A request may have been sent that this process has not read: so long no request must run, in seconds.
      QUIET = 1.0
      FINISHED = "rack.response_finished"
      REQUEST = "protocol.http.request"
      private_constant :QUIET, :FINISHED, :REQUEST

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
        during_request(environment) { @application.call(environment) }
      end

      private

      def begin_worker
        return if @pid == ::Process.pid

        @pid = ::Process.pid
        Worker.begin("ends when its requests have ended")
      end

      # A request runs until its response is written, as far as the adapter says when that is.
      def during_request(environment)
        @running += 1
        finished = environment[FINISHED]
        finished << ->(*) { finish } if finished
        yield
      ensure
        close_connection(environment[REQUEST]) if Limit.ends?
        finish unless finished
      end

      def finish
        @running -= 1
        @finished = Steps.now
        end_worker(::Async::Task.current) if Limit.each_boundary && !@ending
      end

      # The client is to send its next request to another worker.
      def close_connection(request)
        connection = request.connection if request.respond_to?(:connection)
        connection.persistent = false if connection.respond_to?(:persistent=)
      end

      def end_worker(task)
        @ending = true
        root = task.root # a task that has finished has none
        stop_accepting(task)
        ::Async::Task.new(root) do
          sleep(QUIET / 10) until @running.zero? && Steps.now - @finished >= QUIET
          root.stop
        end.run
      end

      # The tasks that accept connections are parents of those that serve them, and would stop these too.
      def stop_accepting(task)
        task = task.parent until task.nil? || accepts?(task)
        return unless task

        server = task.parent
        server.children.to_a.each do |acceptor|
          next unless accepts?(acceptor)

          acceptor.children.to_a.each { |connection| connection.parent = server.parent }
          acceptor.stop
        end
      end

      def accepts?(task)
        lines = task.backtrace.to_a
        lines.any? { |line| line.include?("/io/endpoint/") } && lines.none? { |line| line.include?("/async/http/") }
      end
    end
  end
end
