# frozen_string_literal: true

require "json"
require_relative "../errors"

module Culet
  module Requires
    # A document that was written with --json, read back.
    module Saved
      module_function

      # @param path [String]
      # @param kind [String] what it must be: the command that wrote it
      # @return [Hash]
      # @raise [Culet::Error] when it cannot be read, or is something else
      def read(path, kind)
        document = JSON.parse(File.read(path, encoding: Encoding::UTF_8))
        return document if document.is_a?(Hash) && document["kind"] == kind

        raise Error, "#{path} is not what `#{kind} --json` writes"
      rescue SystemCallError => e
        raise Error, "cannot read #{path}: #{e.message.sub(/ @ .*/, "").downcase}"
      rescue JSON::ParserError
        raise Error, "#{path} is not what `#{kind} --json` writes"
      end
    end
  end
end
