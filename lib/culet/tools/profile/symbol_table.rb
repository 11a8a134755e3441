# frozen_string_literal: true

require_relative "../../system/elf"
require_relative "../../system/foreign_file"

module Culet
  module Profile
    # The functions of one ELF file: its symbol table where it has one, else the exported symbols.
    class SymbolTable
      SHT_SYMTAB = 2
      SHT_NOTE = 7
      SHT_DYNSYM = 11
      STT_FUNC = 2
      STT_IFUNC = 10
      NT_GNU_BUILD_ID = 3
      PT_LOAD = 1
      HEADER_BYTES = 64
      SECTION_BYTES = 64
      SYMBOL_BYTES = 24
      MOST_BYTES = 64 << 20
      Section = Struct.new(:type, :offset, :bytes, :link)
      Load = Struct.new(:offset, :address, :bytes)
      private_constant :SHT_SYMTAB, :SHT_NOTE, :SHT_DYNSYM, :STT_FUNC, :STT_IFUNC, :NT_GNU_BUILD_ID, :PT_LOAD,
                       :HEADER_BYTES, :SECTION_BYTES, :SYMBOL_BYTES, :MOST_BYTES, :Section, :Load

      # @param path [String]
      # @param build_id [String, nil] hex digits: the file must have it
      # @raise [Elf::Invalid] when it is another file, or damaged
      # @raise [SystemCallError] when it cannot be read
      def initialize(path, build_id)
        @path = path
        @loads = []
        @functions = []
        @bytes = 0
        return unless path.start_with?("/")

        # The path comes from the stream, which may be anyone's.
        ForeignFile.open(path) do |file|
          @file = file
          read(build_id)
        end
      end

      # @return [Integer] that were read
      attr_reader :bytes

      # A table without functions.
      NONE = new("", nil).freeze

      # @param offset [Integer] in the file
      # @return [Integer, nil] the address that it is mapped at
      def address(offset)
        load = @loads.find { |one| offset >= one.offset && offset < one.offset + one.bytes }
        load && (offset - load.offset + load.address)
      end

      # @param address [Integer]
      # @return [String, nil] name of the function that contains it
      def name(address)
        at = @functions.bsearch_index { |start, _, _| start > address } || @functions.size
        return if at.zero?

        start, bytes, name = @functions[at - 1]
        name if address < start + [bytes, 1].max
      end

      private

      def read(build_id)
        @header = part(0, HEADER_BYTES)
        unless @header.start_with?("\x7fELF\x02\x01".b)
          raise Elf::Invalid,
                "#{@path} is no 64-bit little-endian ELF file"
        end

        read_loads
        sections = read_sections
        unless build_id.nil? || build_ids(sections).include?(build_id)
          raise Elf::Invalid,
                "#{@path} has another build id"
        end

        table = sections.find { |one| one.type == SHT_SYMTAB } || sections.find { |one| one.type == SHT_DYNSYM }
        read_functions(table, sections[table.link]) if table && sections[table.link]
      end

      def part(offset, count)
        @bytes += count
        data = count.between?(1, MOST_BYTES) && offset.between?(0, 1 << 40) ? @file.pread(count, offset) : "".b
        data.bytesize == count ? data : raise(Elf::Invalid, "#{@path} is damaged")
      rescue EOFError
        raise Elf::Invalid, "#{@path} is damaged"
      end

      def read_loads
        at, = @header.unpack("@32Q<")
        size, count = @header.unpack("@54S<2")
        table = count.zero? ? "".b : part(at, size * count)
        @loads = Array.new(size < 56 ? 0 : count) do |i|
          type, _flags, offset, address, _physical, in_file = table.byteslice(i * size, 56).unpack("L<2Q<4")
          Load.new(offset, address, in_file) if type == PT_LOAD
        end.compact
      end

      def read_sections
        at, = @header.unpack("@40Q<")
        size, count = @header.unpack("@58S<2")
        return [] if count.zero? || size < SECTION_BYTES

        table = part(at, size * count)
        Array.new(count) do |i|
          _name, type, _flags, _address, offset, bytes, link = table.byteslice(i * size,
                                                                               SECTION_BYTES).unpack("L<2Q<4L<")
          Section.new(type, offset, bytes, link)
        end
      end

      def build_ids(sections)
        sections.select { |one| one.type == SHT_NOTE && one.bytes.between?(16, 4096) }.filter_map do |section|
          note = part(section.offset, section.bytes)
          name, content, type = note.unpack("L<3")
          note.byteslice(12 + ((name + 3) & ~3), content).to_s.unpack1("H*") if type == NT_GNU_BUILD_ID
        end
      end

      def read_functions(table, strings)
        names = part(strings.offset, strings.bytes)
        symbols = part(table.offset, table.bytes)
        @functions = (0...(symbols.bytesize / SYMBOL_BYTES)).filter_map do |i|
          name, info, _other, section, value, size = symbols.byteslice(i * SYMBOL_BYTES,
                                                                       SYMBOL_BYTES).unpack("L<CCS<Q<2")
          next unless [STT_FUNC, STT_IFUNC].include?(info & 15) && section != 0 && name < names.bytesize

          [value, size, names.byteslice(name, 400).unpack1("Z*").force_encoding(Encoding::UTF_8).scrub("?")]
        end.sort
      end
    end
  end
end
