# frozen_string_literal: true

require "json"
require "zlib"
require_relative "../npm_package"

# The schema that Kubernetes publishes for its resources (OpenAPI 2), as an npm package carries it. It is held to strictly:
# a key that the schema does not have is an error, as with `kubectl apply --validate=strict`.
class KubernetesSchema
  PACKAGE = NpmPackage.new("kubernetes-client", "9.0.0", "b1e278c84beb865239dc8282d1870b185a61d7ec67da2d911916fec883c6f6a6")
  SPECIFICATION = "lib/specs/swagger-1.13.json.gz"
  # The syntax of a quantity, which the schema has in prose.
  QUANTITY = /\A[+-]?(\d+|\d+\.\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?\z/
  TYPES = { "string" => [String], "integer" => [Integer], "number" => [Numeric], "boolean" => [true.class, false.class],
            "object" => [Hash], "array" => [Array] }.freeze
  private_constant :PACKAGE, :SPECIFICATION, :QUANTITY, :TYPES

  # @return [KubernetesSchema] of Kubernetes 1.13, whose apps/v1 every later release accepts
  # @raise [NpmPackage::Missing]
  def self.load
    new(JSON.parse(Zlib.gunzip(File.binread(File.join(PACKAGE.path, SPECIFICATION)))).fetch("definitions"))
  end

  # @param definitions [Hash{String => Hash}] by the names that `$ref` has
  def initialize(definitions)
    @definitions = definitions
  end

  # @param document [Hash] a resource
  # @return [Boolean] whether it is one of Kubernetes' own, which are all that the schema has
  def knows?(document) = !name_of(document).nil?

  # @param document [Hash] a resource that the schema knows
  # @return [Array<String>] each with the path of the value
  def errors(document) = check(document, { "$ref" => "#/definitions/#{name_of(document)}" }, document["kind"])

  private

  def name_of(document)
    group, version = ["", *document.fetch("apiVersion").split("/")].last(2)
    wanted = { "group" => group, "version" => version, "kind" => document.fetch("kind") }
    @definitions.key(@definitions.values.find { |schema| schema.fetch("x-kubernetes-group-version-kind", []).include?(wanted) })
  end

  def check(value, schema, path)
    return check_reference(value, schema["$ref"].delete_prefix("#/definitions/"), path) if schema["$ref"]
    return ["#{path} is #{value.inspect}, not of type #{schema["type"]}"] unless type?(value, schema)

    case value
    when Hash then check_object(value, schema, path)
    when Array then value.each_with_index.flat_map { |element, i| check(element, schema.fetch("items"), "#{path}[#{i}]") }
    else []
    end
  end

  def check_reference(value, name, path)
    return check(value, @definitions.fetch(name), path) unless name.end_with?(".resource.Quantity")

    value.is_a?(Numeric) || value.to_s.match?(QUANTITY) ? [] : ["#{path} is #{value.inspect}, not a quantity"]
  end

  def type?(value, schema)
    return [String, Integer].any? { |type| value.is_a?(type) } if schema["format"] == "int-or-string"

    TYPES.fetch(schema.fetch("type", "object")).any? { |type| value.is_a?(type) }
  end

  def check_object(value, schema, path)
    properties = schema.fetch("properties", {})
    missing = schema.fetch("required", []).reject { |key| value.key?(key) }.map { |key| "#{path} lacks #{key}" }
    missing + value.flat_map do |key, part|
      inner = properties[key] || schema["additionalProperties"]
      inner ? check(part, inner, "#{path}.#{key}") : ["#{path} has no field #{key}"]
    end
  end
end
