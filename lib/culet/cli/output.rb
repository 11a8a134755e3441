# frozen_string_literal: true

require "delegate"
require_relative "../errors"

module Culet
  module CLI
    # Standard output: a failed write is an Error, so that no report is lost silently.
    class Output < SimpleDelegator
      # The reader closed the pipe early, as `head` does.
      class Unread < StandardError; end

      def initialize(io)
        super
        @reader_gone = reader_gone?(io)
      end

      %i[write print puts << putc flush].each do |name|
        define_method(name) { |*words| guarded { __getobj__.public_send(name, *words) } }
      end

      private

      def guarded
        yield
      rescue Errno::EPIPE
        raise Unread unless @reader_gone

        raise Error, "cannot write to standard output: it is closed"
      rescue SystemCallError, IOError => e
        raise Error, "cannot write to standard output: #{Error.reason(e)}"
      end

      # For a descriptor that was closed when Ruby started, Ruby opens a pipe that has no reader. select(2) reports the
      # writing end of such a pipe as readable, because of the error.
      def reader_gone?(io) = io.is_a?(IO) && io.stat.pipe? && !IO.select([io], nil, nil, 0).nil?
    end

    # Standard error: a failed write is ignored; report and exit status remain.
    class Messages < SimpleDelegator
      %i[write print puts << putc flush].each do |name|
        define_method(name) do |*words|
          __getobj__.public_send(name, *words)
        rescue SystemCallError, IOError
          nil
        end
      end
    end
  end
end
