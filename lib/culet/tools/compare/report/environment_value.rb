# frozen_string_literal: true

require_relative "../../../text/size"

module Culet
  module Compare
    module Report
      # An entry of the document's environment as text.
      module EnvironmentValue
        module_function

        # @param environment [Hash] of a document
        # @return [Array<Array(String, String)>] name and text of each entry but the command
        def rows(environment) = environment.except("command").map { |key, value| [name(key), text(key, value)] }

        # @param key [String] its key in the document; one that ends in `_bytes` is a size
        def text(key, value)
          case value
          when nil, {}, [] then "none"
          when Numeric then key.end_with?("_seconds") ? "#{value} s" : integer(key, value)
          when Array then value.map { |one| text(key, one) }.join(", ")
          when Hash then value.map { |name, one| "#{name}=#{text(name, one)}" }.join(", ")
          else value.to_s
          end
        end

        # The name, without the unit that the value has.
        def name(key) = key.sub(/_(bytes|seconds)\z/, "").tr("_", " ")

        # @return [String] an Integer of the environment, a size in bytes with its unit
        def integer(key, value) = key.end_with?("_bytes") ? size(key, value) : value.to_s

        # @return [String] bytes with a unit; a page in KiB
        def size(key, value)
          key.start_with?("page_") ? "#{value / 1024} KiB" : Text::Size.human(value)
        end
      end
    end
  end
end
