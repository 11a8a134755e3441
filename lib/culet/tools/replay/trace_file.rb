# frozen_string_literal: true

require_relative "../trace/header"

module Culet
  module Replay
    # The trace to replay, in place of a comparison's workload.
    class TraceFile
      attr_reader :path, :header

      # @param path [String]
      # @raise [Culet::Error] when it is not a trace
      def initialize(path)
        @path = path
        @header = Trace::Header.read(path)
      end

      # @return [String]
      def name = File.basename(path)

      # As Compare::Workload answers.
      def server? = false

      def unprepared? = false
    end
  end
end
