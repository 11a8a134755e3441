# frozen_string_literal: true

module Culet
  module CLI
    class Mcp
      # Answers pings and takes cancellations while a tool works: calls of tools have threads.
      class Transport < ::MCP::Server::Transports::StdioTransport
        class << self
          # @return [Array<Integer>] process numbers of the calls that go on
          attr_reader :children

          # @param pid [Integer] a call's process, ended where it goes on
          def stop(pid)
            ::Process.kill("INT", pid) if children.include?(pid)
          rescue Errno::ESRCH
            nil # it has ended
          end
        end
        @children = []

        def initialize(server)
          super
          @lock = Mutex.new
          @calls = []
        end

        # Writes one line at a time.
        def send_response(message) = @lock.synchronize { super }

        # Ends the calls that go on, when the client has left.
        def finish
          self.class.children.dup.each { |pid| self.class.stop(pid) }
          @calls.each(&:join)
        end

        private

        def dispatch_with_era(parsed)
          return super unless parsed[:method] == "tools/call"

          @calls.select!(&:alive?)
          @calls << Thread.new { call(parsed, method(__method__).super_method) }
          nil
        end

        def call(parsed, handler)
          response = handler.call(parsed)
          send_response(response) if response
        rescue SystemCallError, IOError
          nil # the client has left
        end
      end
    end
  end
end
