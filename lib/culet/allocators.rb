# frozen_string_literal: true

require_relative "errors"
require_relative "native"
require_relative "allocators/definition"
require_relative "allocators/choice"

module Culet
  # The allocators a Ruby program can run on, by name: where their libraries
  # are, what they are told through the environment, which package brings them.
  module Allocators
    module_function

    # @return [Array<String>] all known names
    def names = CATALOGUE.map(&:name)

    # @return [Array<Definition>]
    def definitions = CATALOGUE

    # @param spec [String] "NAME[:KEY=VALUE[,KEY=VALUE...]]", e.g. "glibc:arena_max=2"
    # @return [Choice]
    # @raise [UsageError] for an unknown name or a malformed setting
    def parse(spec)
      name, text = spec.to_s.strip.split(":", 2)
      definition = CATALOGUE.find { |known| known.name == name }
      unless definition
        raise UsageError, "there is no allocator #{name.to_s.inspect}; the known ones are #{names.join(", ")}"
      end

      Choice.new(definition: definition, settings: text ? settings(definition, text) : {})
    end

    # @return [String] absolute path of libculet.so
    # @raise [Culet::Error] when it is not built; the message says why and what to do
    def culet_library
      Native.find("libculet.so") || raise(Error, Native.missing_reason("libculet.so"))
    end

    # @param path [String] a library's path or file name
    # @return [String, nil] the name of the allocator it belongs to
    def of_library(path)
      CATALOGUE.find { |definition| definition.name != "glibc" && definition.library?(path) }&.name
    end

    # @param environment [#keys]
    # @return [Array<String>] the variables in it that tune an allocator of the catalogue, GLIBC_TUNABLES aside,
    #   which also tunes other parts of glibc
    def tuning_variables(environment)
      environment.keys.select do |key|
        key != "GLIBC_TUNABLES" && CATALOGUE.any? { |definition| definition.variables.match?(key) }
      end
    end

    def settings(definition, text)
      raise UsageError, "#{definition.name} has no settings; write its name alone" if definition.settings&.empty?

      pairs = text.empty? ? [""] : text.split(",", -1)
      pairs.each_with_object({}) do |pair, found|
        key, value = pair.split("=", 2)
        unless value && !key.empty?
          raise UsageError, "#{pair.inspect} is no setting of #{definition.name}; write KEY=VALUE, " \
                            "e.g. #{example(definition)}"
        end
        raise UsageError, "#{definition.name} has the setting #{key} twice; give it once" if found.key?(key)

        found[key] = checked(definition, key, value)
      end
    end
    private_class_method :settings

    def checked(definition, key, value)
      setting = definition.setting(key)
      unless setting
        known = definition.settings ? "; it has #{definition.settings.keys.join(", ")}" : ""
        raise UsageError, "#{definition.name} has no setting #{key.inspect}#{known}"
      end
      return value if setting.accepts?(value)

      raise UsageError, "#{definition.name}'s #{key} takes #{setting.expected}, not #{value.inspect}"
    end
    private_class_method :checked

    EXAMPLES = { "glibc" => "glibc:arena_max=2", "jemalloc" => "jemalloc:narenas=2", "tcmalloc" => "tcmalloc:release_rate=10",
                 "mimalloc" => "mimalloc:purge_delay=0", "culet" => "culet:children=all" }.freeze
    private_constant :EXAMPLES

    def example(definition) = EXAMPLES.fetch(definition.name)
    private_class_method :example
  end
end
