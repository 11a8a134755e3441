# frozen_string_literal: true

require_relative "../trace/header"

module Culet
  module Replay
    # The trace that is replayed: what a workload is to a comparison.
    class Subject
      attr_reader :path, :header

      # @param path [String]
      # @raise [Culet::Error] when it is no trace
      def initialize(path)
        @path = path
        @header = Trace::Header.read(path)
      end

      # @return [String]
      def name = File.basename(path)

      # @return [Boolean] as Compare::Document asks
      def server? = false
    end
  end
end
