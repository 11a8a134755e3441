# frozen_string_literal: true

require "etc"
require "rbconfig"
require "shellwords"

module StandardBench
  # How a program is built from the collection's folder bench/.
  #
  # compiler: :c or :cxx; sources: patterns of files; without: files that they match and that are no part of it; flags;
  # edits: texts to replace in the sources, where the program has no argument for a shorter run; hint: what to do where
  # a source is missing
  Recipe = Struct.new(:compiler, :sources, :without, :flags, :edits, :hint, keyword_init: true)

  # How fast a program was, by its own output.
  #
  # pattern: of a number; factor: from the number to operations per second; operations: of which the time is given;
  # seconds: how long the program runs, where that is fixed and the work is not
  Rate = Struct.new(:pattern, :factor, :operations, :seconds, keyword_init: true) do
    # @param text [String] the program's output
    # @return [Float, nil] seconds for the operations
    def time(text)
      rate = text.scan(pattern).flatten.last.to_f * factor
      operations / rate if rate.positive?
    end
  end

  # One program and its arguments.
  #
  # binary: of the builder, nil for installed programs; command; client: of a server, the command that puts load on it
  # and whose output has the rate; rate: nil where the time is that of the whole process; needs: programs that must be
  # installed; runs: of each contender unless --runs; timeout: seconds; ruby: true where it is of RubyPrograms;
  # environment: more variables
  Program = Struct.new(:name, :about, :binary, :command, :client, :rate, :needs, :runs, :timeout, :ruby, :environment,
                       keyword_init: true) do
    def figures = Catalogue::FIGURES

    # @param words [String] a command with the names of paths and numbers, e.g. "%<built>s/larson %<processors>d"
    # @param paths [Hash{Symbol => String}] built, sources and folder
    def self.words(words, **paths)
      names = { ruby: RbConfig.ruby, processors: Etc.nprocessors, **paths }
      words.shellsplit.map { |word| format(word, **names) }
    end
  end
end
