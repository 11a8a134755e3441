# frozen_string_literal: true

require_relative "../../system/elf"

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
      # @param files [Hash] opened files that several of these share
      def initialize(mappings, files = {})
        @mappings = mappings
        @functions = {}
        @files = files
      end

      # @param address [Integer] in a function
      # @return [Array(String, String)] name of the function ("[LIBRARY]" if it is not known, "??" if
      #   the library is not known either) and of the library
      def name(address) = @functions[address] ||= find(address)

      # @param address [Integer]
      # @return [Recording::Mapping, nil]
      def mapping(address)
        found = @mappings.bsearch { |one| one.end > address }
        found if found && found.start <= address
      end

      private

      def find(address)
        found = mapping(address) or return [UNKNOWN, nil]
        key = [found.path, found.build_id]
        @files[key] = elf(found) unless @files.key?(key)
        elf = @files[key]
        # The address in the file's own numbering, by way of the file offset.
        at = elf&.address_at(address - found.start + found.offset)
        library = File.basename(found.path)
        [(at && elf.function_at(at)) || "[#{library}]", library]
      end

      # The path comes from the stream, which may be anyone's: no link is followed.
      #
      # @return [Elf, nil] with its functions read; nil: without its file a library's functions have no names
      def elf(mapping)
        return if @files.size > MOST_FILES || @files.each_value.sum { |one| one&.bytes_read.to_i } > MOST_BYTES
        return unless mapping.path.start_with?("/")

        elf = Elf.new(mapping.path, follow: false)
        return unless mapping.build_id.nil? || elf.build_id == mapping.build_id

        elf.tap(&:functions).tap { |one| one.address_at(0) }
      rescue Culet::Error, SystemCallError
        nil
      end
    end
  end
end
