# frozen_string_literal: true

require "json"
require_relative "../../errors"
require_relative "shapes"

module Culet
  module Requires
    # Reads a document of --json back; the file is not trusted.
    module Saved
      # A large application has 10 MB.
      MOST_BYTES = 256 << 20
      private_constant :MOST_BYTES

      module_function

      # @param path [String]
      # @param kind [String] the command that wrote it
      # @param shape [Hash] as for Shape
      # @return [Hash]
      # @raise [Culet::Error] when the file is not readable, not such a document, or incomplete
      def read(path, kind, shape)
        document = JSON.parse(text(path))
        raise Error, foreign(path, kind) unless document.is_a?(Hash) && document["kind"] == kind

        Shape.check(document, shape, name: path)
        fault = Shapes.fault_of_tree(document["features"]) if shape.equal?(Shapes::DOCUMENT)
        raise Error, "#{path} is damaged: #{fault}" if fault

        document
      rescue SystemCallError => e
        raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
      rescue JSON::ParserError, EncodingError
        raise Error, foreign(path, kind)
      end

      def foreign(path, kind) = "#{path} is not a document of `#{kind} --json`"
      private_class_method :foreign

      def text(path)
        text = File.open(path, "rb") { |file| file.read(MOST_BYTES + 1) }.to_s
        raise Error, "#{path} is larger than any report that culet writes" if text.bytesize > MOST_BYTES

        text.force_encoding(Encoding::UTF_8)
      end
      private_class_method :text
    end
  end
end
