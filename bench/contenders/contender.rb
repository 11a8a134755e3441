# frozen_string_literal: true

module Bench
  # An allocator as a contender: one of the catalogue of `culet run`, or any library by its path.
  class Contender
    # @return [String] as on the command line
    attr_reader :name

    # The contenders that were named, or the usual ones that are installed; says which of those are left out.
    #
    # @param named [Array<String>, nil]
    # @param usual [Array<String>]
    # @param find [#call] makes a contender of its name
    # @return [Array<Contender>]
    # @raise [Culet::Error] where one that was named, or culet, is missing
    def self.choose(named, usual, find = method(:new))
      return named.map { |text| find.call(text) } if named

      usual.filter_map do |text|
        find.call(text)
      rescue Culet::Error => e
        raise if text == "culet"

        Bench.progress("without #{text}: #{e.message}")
      end
    end

    # A library with or without a name of its own; settings have a colon before their equals sign.
    LIBRARY = %r{\A(?:(?<name>[\w.-]+)=)?(?<file>[^:=]*/[^:]*)\z}

    # @param text [String] "NAME[:SETTING]", or the path of a library, or "NAME=PATH"
    # @raise [Culet::Error] for an unknown name or a file that is not there
    def initialize(text)
      match = LIBRARY.match(text)
      @name = match&.[](:name) || text
      @choice = Culet::Allocators.parse(match ? match[:file] : text)
      @choice.library
    end

    # @return [Boolean] whether it is culet
    def culet? = File.basename(library.to_s) == "libculet.so"

    # @return [String, nil] path of the library; nil for libc
    def library = @choice.library

    # @return [String, nil]
    def version = @choice.version

    # @return [Hash{String => String, nil}] to merge into a program's environment
    def environment = @choice.environment(ENV, isolated: true)

    # @param file [String] the library whose malloc a program calls
    # @return [Boolean] whether that is this one
    def serves?(file) = library ? File.identical?(file, library) : File.basename(file).match?(/\Alibc[.-]/)
  end
end
