# frozen_string_literal: true

require_relative "symbol_table"

module Culet
  module Profile
    # Names of native functions: from the symbol tables of the files that a process had mapped, if these are still the
    # same files.
    class Symbols
      # Of functions without a name.
      UNKNOWN = "??"
      # Files that a report looks into, and bytes of their tables: which these are, the profile says.
      MOST_FILES = 2000
      MOST_BYTES = 128 << 20
      private_constant :MOST_FILES, :MOST_BYTES

      # @param mappings [Array<Recording::Mapping>] sorted by address
      # @param files [Hash] symbol tables that several of these share
      def initialize(mappings, files = {})
        @mappings = mappings
        @functions = {}
        @files = files
      end

      # @param address [Integer] in a function
      # @return [Array(String, String)] name of the function ("[LIBRARY]" if it is not known, "??" if
      #   the library is not known either) and of the library
      def name(address)
        @functions[address] ||= find(address)
      end

      # @param address [Integer]
      # @return [Recording::Mapping, nil]
      def mapping(address)
        found = @mappings.bsearch { |one| one.end > address }
        found if found && found.start <= address
      end

      private

      def find(address)
        found = mapping(address) or return [UNKNOWN, nil]
        table = @files[[found.path, found.build_id]] ||= functions(found)
        # The address in the file's own numbering, by way of the file offset.
        at = table.address(address - found.start + found.offset)
        library = File.basename(found.path)
        [(at && table.name(at)) || "[#{library}]", library]
      end

      def functions(mapping)
        return SymbolTable::NONE if @files.size > MOST_FILES || @files.each_value.sum(&:bytes) > MOST_BYTES

        SymbolTable.new(mapping.path, mapping.build_id)
      rescue Culet::Error, SystemCallError
        # Without its file a library's functions have no names.
        SymbolTable::NONE
      end
    end
  end
end
