# frozen_string_literal: true

require_relative "../../../lib/culet/errors"
require_relative "../../../lib/culet/system/foreign_json"
require_relative "../../../lib/culet/system/input_file"
require_relative "../../../lib/culet/system/shape"

module Culet
  module Boot
    # The shape of a --json file: the keys that tables, pages and differences read.
    module Shapes
      TEXT = Shape::TEXT
      COUNT = Shape::COUNT
      SECONDS = Shape::SECONDS
      TOLD_COUNT = Shape.nullable(COUNT)
      TOLD_TEXT = Shape.nullable(TEXT)
      private_constant :TEXT, :COUNT, :SECONDS, :TOLD_COUNT, :TOLD_TEXT

      FEATURE = {
        "path" => TOLD_TEXT, "name" => TOLD_TEXT, "gem" => TEXT, "error" => Shape.either(nil, false, TEXT),
        "parent" => TOLD_COUNT, "self_seconds" => SECONDS, "self_cpu_seconds" => SECONDS, "total_seconds" => SECONDS,
        "total_cpu_seconds" => SECONDS, "objects" => COUNT, "object_bytes" => COUNT, "retained_objects" => TOLD_COUNT,
        "retained_bytes" => TOLD_COUNT, "mallocs" => TOLD_COUNT, "malloc_bytes" => TOLD_COUNT, "syscalls" => TOLD_COUNT,
        "failed_syscalls" => TOLD_COUNT, "other_syscalls" => TOLD_COUNT, "iseq_bytes" => COUNT, "repeats" => COUNT,
        "repeated_seconds" => SECONDS
      }.freeze
      # Sums of a gem's files; nil for figures that were not counted.
      GEM = { "gem" => TEXT, "files" => COUNT, "self_seconds" => SECONDS, "self_cpu_seconds" => SECONDS,
              "objects" => COUNT, "retained_objects" => TOLD_COUNT, "retained_bytes" => TOLD_COUNT,
              "mallocs" => TOLD_COUNT, "malloc_bytes" => TOLD_COUNT, "syscalls" => TOLD_COUNT,
              "failed_syscalls" => TOLD_COUNT, "iseq_bytes" => COUNT }.freeze
      PROCESS = { "pid" => COUNT, "program" => TEXT, "features" => COUNT, "total_seconds" => SECONDS }.freeze

      DOCUMENT = {
        "command" => [TEXT], "pid" => COUNT, "ruby" => TEXT, "process_seconds" => Shape.nullable(SECONDS),
        "total_seconds" => SECONDS, "total_cpu_seconds" => SECONDS, "features" => [FEATURE], "gems" => [GEM],
        "code" => { "iseq_bytes" => COUNT, "count" => COUNT }, "processes" => [PROCESS], "problems" => [TEXT]
      }.freeze
      private_constant :FEATURE, :GEM, :PROCESS

      # Ruby's stack is not that deep.
      DEEPEST = 2_000

      # @param features [Array<Hash>] of a DOCUMENT
      # @return [String, nil] the fault of their tree
      def self.fault_of_tree(features)
        depths = []
        features.each_with_index do |one, index|
          parent = one["parent"]
          return "features[#{index}].parent is none of those before it" if parent && parent >= index

          depths << (parent ? depths[parent] + 1 : 0)
          return "features[#{index}] is too deep in its tree" if depths.last > DEEPEST
        end
        nil
      end
    end

    # Reads a document of --json back; the file is not trusted.
    module Saved
      # A large application has 10 MB.
      MOST_BYTES = 64 << 20
      private_constant :MOST_BYTES

      module_function

      # @param kind [String] what the document says that it is
      # @param shape [Hash] as for Shape
      # @param writer [String] the command that writes such documents, for messages
      # @return [Hash]
      # @raise [Culet::Error] when the file is not readable, not such a document, or incomplete
      def read(path, kind, shape, writer:)
        document = ForeignJson.parse(InputFile.read(path, what: "a document of `#{writer}`", most_bytes: MOST_BYTES))
        raise Error, foreign(path, writer) unless document.is_a?(Hash) && document["kind"] == kind

        Shape.check(document, shape, name: path)
        fault = Shapes.fault_of_tree(document["features"]) if shape.equal?(Shapes::DOCUMENT)
        raise Error, "#{path} is damaged: #{fault}" if fault

        document
      rescue JSON::ParserError
        raise Error, foreign(path, writer)
      end

      def foreign(path, writer) = "#{path} is not a document of `#{writer}`"
      private_class_method :foreign
    end
  end
end
