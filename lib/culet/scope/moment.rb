# frozen_string_literal: true

require_relative "builder"

module Culet
  module Scope
    # One process at one moment, not yet unpacked: a long series is kept as these, and one after the other is looked at.
    class Moment
      # @param name [String] what to call its stream in sentences
      # @yieldreturn [String] the stream
      def initialize(name:, &stream)
        @name = name
        @stream = stream
      end

      # @return [String] the stream, not yet looked at
      def stream = @stream.call

      # @return [Snapshot] made anew each time
      # @raise [Culet::Error] when the stream is cut off, damaged, foreign or newer
      def snapshot = Builder.new(stream, name: @name).call
    end
  end
end
