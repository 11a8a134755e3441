# frozen_string_literal: true

require_relative "errors"
require_relative "native"
require_relative "allocators/definition"
require_relative "allocators/choice"
require_relative "allocators/library_file"
require_relative "allocators/trim"

module Culet
  # The allocators a Ruby program can run on, by name: libraries, settings, environment variables and packages.
  #
  # @api private
  module Allocators
    module_function

    # @return [Array<String>] all known names
    def names = CATALOGUE.map(&:name)

    # @return [Array<Definition>]
    def definitions = CATALOGUE

    # @param spec [String] "NAME[:SETTING[,SETTING...]]", each KEY=VALUE or "trim", e.g. "glibc:trim,arena_max=2"; NAME
    #   may be the path of a library, with a slash
    # @return [Choice]
    # @raise [UsageError] for an unknown name, a file that is no allocator, or a malformed setting
    def parse(spec)
      name, text = spec.to_s.strip.split(":", 2)
      file = LibraryFile.new(name) if name&.include?("/")
      definition = file ? definition_of(file) : CATALOGUE.find { |known| known.name == name }
      raise UsageError, unknown(name.to_s) unless definition
      return Choice.new(definition: definition, settings: {}, file: file&.path) unless text

      trims, words = words(text).partition { |word| Trim.setting?(word) }
      trim = Trim.parse(trims)
      if trim.on? && definition.untrimmable
        raise UsageError, "#{name} has no function that returns free memory, so it cannot be trimmed"
      end

      Choice.new(definition: definition, settings: settings(definition, words), trim: trim, file: file&.path)
    end

    # @return [String] absolute path of libculet.so
    # @raise [Culet::Error] when it is not built; the message says why and what to do
    def culet_library = Native.find("libculet.so") || raise(Error, Native.missing_reason("libculet.so"))

    # @param path [String] a library's path or file name
    # @return [String, nil] the name of the library's allocator
    def of_library(path)
      [*CATALOGUE, SNMALLOC].find { |definition| definition.name != "glibc" && definition.library?(path) }&.name
    end

    # @param elf [Elf]
    # @return [String, nil] the name of the allocator, recognised by an exported symbol
    def of_elf(elf) = CATALOGUE.find { |definition| definition.symbol && elf.defines?(definition.symbol) }&.name

    # @param environment [#keys]
    # @return [Array<String>] the variables in it that tune an allocator of the catalogue; not GLIBC_TUNABLES, which
    #   also tunes other parts of glibc, and not CULET_TRIM, which counts under any allocator
    def tuning_variables(environment)
      environment.keys.select do |key|
        key != "GLIBC_TUNABLES" && CATALOGUE.any? { |definition| definition.variables.match?(key) }
      end
    end

    # The exported symbols are more reliable than the file name.
    def definition_of(file)
      name = of_elf(file.elf) || of_library(file.path)
      [*CATALOGUE, SNMALLOC].find { |definition| definition.name == name } || UNKNOWN
    end

    def unknown(name)
      hint = Trim.setting?(name) ? "; #{name} is a setting: write e.g. glibc:#{name}" : ""
      "there is no allocator #{name.inspect}; the known ones are #{names.join(", ")}; " \
        "write another one as the path of its library, e.g. ./libjemalloc.so.2#{hint}"
    end

    # Keeps empty words, so that the message names them.
    def words(text) = text.empty? ? [""] : text.split(",", -1)

    def settings(definition, pairs)
      if definition.settings&.empty? && !pairs.empty?
        raise UsageError, "#{definition.name} has no settings of its own; write its name alone"
      end

      pairs.each_with_object({}) do |pair, found|
        key, value = pair.split("=", 2)
        unless value && !key.empty?
          raise UsageError, "#{pair.inspect} is not a setting of #{definition.name}; write KEY=VALUE, " \
                            "e.g. #{example(definition)}"
        end
        raise UsageError, "#{definition.name} has the setting #{key} twice; give it once" if found.key?(key)

        found[key] = checked(definition, key, value)
      end
    end

    def checked(definition, key, value)
      setting = definition.setting(key)
      unless setting
        known = definition.settings ? "; it has #{definition.settings.keys.join(", ")}" : ""
        raise UsageError, "#{definition.name} has no setting #{key.inspect}#{known}"
      end
      return value if setting.accepts?(value)

      raise UsageError, "#{definition.name}'s #{key} takes #{setting.expected}, not #{value.inspect}"
    end

    EXAMPLES = { "glibc" => "glibc:arena_max=2", "jemalloc" => "jemalloc:narenas=2",
                 "tcmalloc" => "tcmalloc:release_rate=10", "mimalloc" => "mimalloc:purge_delay=0",
                 "culet" => "culet:children=all" }.freeze
    private_constant :EXAMPLES

    def example(definition) = EXAMPLES.fetch(definition.name)

    private_class_method :definition_of, :unknown, :words, :settings, :checked, :example
  end
end
