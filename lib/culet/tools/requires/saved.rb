# frozen_string_literal: true

require_relative "../../errors"
require_relative "../../system/foreign_json"
require_relative "../../system/input_file"
require_relative "shapes"

module Culet
  module Requires
    # Reads a document of --json back; the file is not trusted.
    module Saved
      # A large application has 10 MB.
      MOST_BYTES = 64 << 20
      private_constant :MOST_BYTES

      module_function

      # @param path [String]
      # @param kind [String] the command that wrote it
      # @param shape [Hash] as for Shape
      # @return [Hash]
      # @raise [Culet::Error] when the file is not readable, not such a document, or incomplete
      def read(path, kind, shape)
        document = ForeignJson.parse(InputFile.read(path, what: "a document of `#{kind} --json`",
                                                          most_bytes: MOST_BYTES))
        raise Error, foreign(path, kind) unless document.is_a?(Hash) && document["kind"] == kind

        Shape.check(document, shape, name: path)
        fault = Shapes.fault_of_tree(document["features"]) if shape.equal?(Shapes::DOCUMENT)
        raise Error, "#{path} is damaged: #{fault}" if fault

        document
      rescue JSON::ParserError
        raise Error, foreign(path, kind)
      end

      def foreign(path, kind) = "#{path} is not a document of `#{kind} --json`"
      private_class_method :foreign
    end
  end
end
