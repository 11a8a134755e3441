# frozen_string_literal: true

require_relative "../../system/clock"
require_relative "worker"

module Culet
  module Limit
    # Keeps the memory limit of Falcon: the worker with the most private memory accepts no more connections, finishes
    # its requests and ends, and Falcon starts a new worker. SIGINT, Falcon's own way to end a worker, would interrupt
    # requests.
    #
    # Rack middleware. All requests of a worker run in the fibers of one thread, so the counts need no lock.
    class Falcon
      # Seconds without a request before the worker ends: the client may have sent one that is not read yet.
      QUIET = 1.0
      FINISHED = "rack.response_finished"
      REQUEST = "protocol.http.request"
      private_constant :QUIET, :FINISHED, :REQUEST

      def initialize(application)
        @application = application
        @running = 0
      end

      # @param environment [Hash]
      # @return [Array]
      def call(environment)
        return @application.call(environment) unless Limit.active? && (task = ::Async::Task.current?)

        begin_worker(task) unless @pid == ::Process.pid
        Limit.throttle.pass
        during_request(environment) { @application.call(environment) }
      end

      private

      # Another thread decides on a restart. This worker may get no further request, because those of the other workers
      # wait at the throttle until this worker has ended.
      def begin_worker(task)
        @pid = ::Process.pid
        @finished = Clock.now
        acceptors = acceptors(task)
        restarts = Thread::Queue.new
        ::Async::Task.new(task.root, transient: true) do |waiting|
          restarts.pop
          end_worker(acceptors, waiting.root)
        end.run
        Worker.begin("ends when its requests have ended") { restarts << true }
      end

      # A request runs until its response is written, if the adapter reports that.
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
        @finished = Clock.now
        Limit.each_boundary
      end

      # Closes the connection, so that the client sends its next request to another worker.
      def close_connection(request)
        connection = request.connection if request.respond_to?(:connection)
        connection.persistent = false if connection.respond_to?(:persistent=)
      end

      def end_worker(acceptors, root)
        @finished = Clock.now
        acceptors.each { |acceptor| stop_accepting(acceptor) }
        sleep(QUIET / 10) until @running.zero? && Clock.now - @finished >= QUIET
        root.stop
      end

      # The children of the task serve connections; stopping the task would stop them too.
      def stop_accepting(acceptor)
        acceptor.children.to_a.each { |connection| connection.parent = acceptor.parent.parent }
        acceptor.stop
      end

      # The tasks that accept connections: ancestors of the task of a request.
      def acceptors(task)
        task = task.parent until task.nil? || accepts?(task)
        task ? task.parent.children.to_a.select { |sibling| accepts?(sibling) } : []
      end

      def accepts?(task)
        lines = task.backtrace.to_a # nil of the reactor
        lines.any? { |line| line.include?("/io/endpoint/") } && lines.none? { |line| line.include?("/async/http/") }
      end
    end
  end
end
