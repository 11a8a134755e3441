# frozen_string_literal: true

require_relative "../../model/trace/files"
require_relative "../../model/trace/header"

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

      # @return [Array<String>] traces of other processes of the recording, the largest first
      def others
        (Trace::Files.new(path).files - [File.expand_path(path)]).sort_by { |file| -File.size(file) }
      end

      # @return [Hash] the trace's metadata, for the document
      def to_h = { **header.to_h, "other_traces" => others }

      # As Compare::Workload answers.
      def server? = false

      def unprepared? = false
    end
  end
end
