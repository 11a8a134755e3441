# frozen_string_literal: true

require_relative "foreign_file"

module Culet
  # Reads the parts of an ELF file that the dynamic loader uses: machine, interpreter, needed libraries, exported
  # symbols; and the names of functions at addresses. Symbols are found by the section headers, which strip(1) keeps.
  #
  # Layout: the System V gABI, chapters 4 and 5.
  #
  # @api private
  class Elf
    # The file is damaged, or not an ELF file.
    class Invalid < Error; end

    # An exported symbol.
    # value: address relative to the load base; size in bytes.
    Symbol = Struct.new(:name, :value, :size, keyword_init: true)

    MAGIC = "\x7fELF".b.freeze
    BITS = { 1 => 32, 2 => 64 }.freeze
    private_constant :MAGIC, :BITS

    PT_LOAD = 1
    PT_DYNAMIC = 2
    PT_INTERP = 3
    PT_NOTE = 4
    NT_GNU_BUILD_ID = 3
    DT_NEEDED = 1
    DT_STRTAB = 5
    DT_SONAME = 14
    SHT_SYMTAB = 2
    SHT_DYNSYM = 11
    # STT_FUNC and STT_GNU_IFUNC.
    FUNCTIONS = [2, 10].freeze
    SECTION_BYTES = 64
    SYMBOL_BYTES = 24
    # Largest table in bytes; real files have some kilobytes.
    MOST_BYTES = 1 << 20
    # Largest table of all symbols, or of their names, in bytes.
    MOST_SYMBOL_BYTES = 64 << 20
    NAME_BYTES = 400
    # Functions that are compared with another one at their address; of more the first one's name counts.
    MOST_ALIASES = 100_000
    # Libraries that a file needs: real ones have a tenth of it.
    MOST_NEEDED = 1000
    # Segments of notes; real files have up to four.
    MOST_NOTES = 16
    private_constant :PT_LOAD, :PT_DYNAMIC, :PT_INTERP, :PT_NOTE, :NT_GNU_BUILD_ID, :DT_NEEDED, :DT_STRTAB,
                     :DT_SONAME, :SHT_SYMTAB, :SHT_DYNSYM, :FUNCTIONS, :SECTION_BYTES,
                     :SYMBOL_BYTES, :MOST_BYTES, :MOST_SYMBOL_BYTES, :NAME_BYTES, :MOST_ALIASES, :MOST_NEEDED,
                     :MOST_NOTES

    # @param path [String] a file; it is opened for each read and not kept open
    # @return [Boolean] whether the file starts like an ELF file; false when it cannot be read
    def self.file?(path)
      ForeignFile.open(path, follow: true) { |file| file.read(4) } == MAGIC
    rescue SystemCallError, Error
      false
    end

    # @return [String] path of the file
    attr_reader :path
    # @return [Integer] 32 or 64
    attr_reader :bits
    # @return [Integer] e_machine: 62 x86-64, 183 aarch64
    attr_reader :machine
    # @return [Integer] bytes of the file that were read so far
    attr_reader :bytes_read

    # @param follow [Boolean] whether the path may end in a link
    # @raise [Invalid] when it is not an ELF file
    # @raise [SystemCallError] when it cannot be read
    def initialize(path, follow: true)
      @path = path
      @follow = follow
      @bytes_read = 0
      header = open { |file| file.read(64) } || "".b
      raise Invalid, "#{path} is not an ELF file" unless header.start_with?(MAGIC) && header.bytesize >= 52

      @bits = BITS.fetch(header.getbyte(4)) { raise Invalid, "#{path} has an unknown ELF class" }
      little = header.getbyte(5) == 1
      @machine = header.byteslice(18, 2).unpack1(little ? "S<" : "S>")
      @readable = little && @bits == 64 && header.bytesize == 64
      @program_headers_at, = header.byteslice(32, 8).unpack("Q<")
      @program_header_bytes, @program_header_count = header.byteslice(54, 4).unpack("S<2")
      @section_headers_at, = header.byteslice(40, 8).unpack("Q<")
      @section_header_bytes, @section_header_count = header.byteslice(58, 4).unpack("S<2")
    end

    # @return [Boolean] whether both can be loaded into one process
    def same_kind?(other) = bits == other.bits && machine == other.machine

    # @return [Boolean] whether the program has no loader, so that nothing can be preloaded
    def static? = readable? && segments(PT_INTERP).empty?

    # @return [String, nil] what the linker gave the file to tell it from other builds, in hexadecimal digits
    def build_id
      return unless readable?

      segments(PT_NOTE).first(MOST_NOTES).each do |segment|
        found = build_id_in(read(segment[:offset], segment[:file_size]))
        return found if found
      end
      nil
    end

    # @return [String, nil] the name other files link to
    def soname
      entry = dynamic.find { |tag, _| tag == DT_SONAME }
      entry && string(entry.last)
    end

    # @return [Array<String>] names of the libraries it needs, in the loader's order
    def needed
      @needed ||= dynamic.select { |tag, _| tag == DT_NEEDED }.first(MOST_NEEDED).map { |_, value| string(value) }
    end

    # @return [Elf::Symbol, nil] the symbol of that name that this file defines for others
    def symbol(name)
      names, symbols = @exported ||= tables(SHT_DYNSYM)
      return unless names&.include?("#{name}\0")

      each_symbol(names, symbols) do |at, value, size, _|
        return Symbol.new(name: name, value: value, size: size) if name_in(names, at) == name
      end
      nil
    end

    def defines?(name) = !symbol(name).nil?

    # @param symbol [Elf::Symbol] of a variable whose first value is in the file
    # @return [String] the text at its address, up to the first zero byte
    # @raise [Invalid] when the address is in no part of the file
    def text_at(symbol) = text(offset_of(symbol.value))

    # @return [Array<Integer>] addresses of the functions, sorted: of the symbol table where the file has one, else of
    #   what it exports
    # @raise [Invalid] when the file is damaged
    def functions
      @functions ||= begin
        @table = tables(SHT_SYMTAB) || tables(SHT_DYNSYM) || ["", ""]
        @numbers = {}
        aliases = 0
        each_symbol(*@table) do |_, value, _, type, number|
          next unless FUNCTIONS.include?(type)

          other = @numbers[value]
          next if other && ((aliases += 1) > MOST_ALIASES || (size_and_name(other) <=> size_and_name(number)).positive?)

          @numbers[value] = number
        end
        @numbers.keys.sort
      end
    end

    # @param address [Integer] relative to the load base
    # @return [String, nil] name of the function that contains it
    def function_at(address)
      at = functions.bsearch_index { |start| start > address } || functions.size
      return if at.zero?

      start = functions[at - 1]
      bytes, name = size_and_name(@numbers[start])
      name.force_encoding(Encoding::UTF_8).scrub("?") if address < start + [bytes, 1].max
    end

    # @param offset [Integer] in the file
    # @return [Integer, nil] the address where it is loaded, relative to the load base
    def address_at(offset)
      load = segments(PT_LOAD).find { |one| offset >= one[:offset] && offset < one[:offset] + one[:file_size] }
      load && (offset - load[:offset] + load[:address])
    end

    private

    # Only the layout of the machines culet supports (64-bit, little-endian) is read further than the header.
    def readable? = @readable

    # Sizes and offsets come from the file and may be anything: they are checked before memory is taken for them.
    def read(offset, bytes, most: MOST_BYTES)
      raise Invalid, "#{path} has a table that is too large" if bytes > most

      @bytes_read += bytes
      data = open { |file| file.pread(bytes, offset) if offset + bytes <= size && bytes.positive? }.to_s
      return data if data.bytesize == bytes

      raise Invalid, "#{path} ends too early for an ELF file"
    rescue EOFError
      raise Invalid, "#{path} ends too early for an ELF file"
    end

    # The process that maps the file may have put anything in its place.
    def open(&block)
      ForeignFile.open(path, follow: @follow, &block)
    rescue SystemCallError, Invalid
      raise
    rescue Error => e
      raise Invalid, e.message
    end

    def size = @size ||= File.size(path)

    def program_headers
      @program_headers ||= begin
        raise Invalid, "#{path} has damaged program headers" if @program_header_bytes < 56

        table = read(@program_headers_at, @program_header_bytes * @program_header_count)
        Array.new(@program_header_count) do |i|
          type, _flags, offset, address, _physical, file_size = table.byteslice(i * @program_header_bytes, 56)
                                                                     .unpack("L<2Q<6")
          { type: type, offset: offset, address: address, file_size: file_size }
        end
      end
    end

    def sections
      @sections ||= begin
        count = readable? && @section_header_bytes >= SECTION_BYTES ? @section_header_count : 0
        table = read(@section_headers_at, @section_header_bytes * count, most: MOST_SYMBOL_BYTES)
        Array.new(count) do |i|
          _name, type, _flags, _address, offset, bytes, link =
            table.byteslice(i * @section_header_bytes, SECTION_BYTES).unpack("L<2Q<4L<")
          { type: type, offset: offset, bytes: bytes, link: link }
        end
      end
    end

    # @return [Array(String, String), nil] names and symbols of a table; nil without it
    def tables(type)
      table = sections.find { |one| one[:type] == type }
      names = table && sections[table[:link]]
      [names, table].map { |one| read(one[:offset], one[:bytes], most: MOST_SYMBOL_BYTES) } if names
    end

    # @yieldparam name [Integer] where the name of a symbol is that the file defines
    # @yieldparam value [Integer]
    # @yieldparam size [Integer]
    # @yieldparam type [Integer]
    # @yieldparam number [Integer] of the symbol
    def each_symbol(names, symbols)
      (symbols.bytesize / SYMBOL_BYTES).times do |number|
        name, info, section, value, size = symbols.unpack("L<CxS<Q<2", offset: number * SYMBOL_BYTES)
        yield name, value, size, info & 15, number if section != 0 && name < names.bytesize
      end
    end

    def name_in(names, at) = names.byteslice(at, NAME_BYTES).unpack1("Z*")

    # Not cached, because a hostile file may have millions of symbols with one long name.
    def size_and_name(number)
      names, symbols = @table
      name, size = symbols.unpack("L<x12Q<", offset: number * SYMBOL_BYTES)
      [size, name_in(names, name)]
    end

    # Notes: lengths of name and content, type, name and content, both padded to four bytes.
    def build_id_in(notes)
      at = 0
      while at + 12 <= notes.bytesize
        name_bytes, bytes, type = notes.byteslice(at, 12).unpack("L<3")
        content_at = at + 12 + ((name_bytes + 3) & ~3)
        if type == NT_GNU_BUILD_ID && notes.byteslice(at + 12, name_bytes) == "GNU\0"
          return notes.byteslice(content_at, bytes)&.unpack1("H*")
        end

        at = content_at + ((bytes + 3) & ~3)
      end
    end

    def segments(type) = program_headers.select { |header| header[:type] == type }

    def dynamic
      @dynamic ||= begin
        segment = readable? ? segments(PT_DYNAMIC).first : nil
        pairs = segment ? read(segment[:offset], segment[:file_size] / 16 * 16).unpack("Q<*").each_slice(2).to_a : []
        pairs.take_while { |tag, _| tag != 0 }
      end
    end

    def entry(tag) = dynamic.find { |found, _| found == tag }&.last

    # The file offset of an address in the loaded image.
    def offset_of(address)
      segment = segments(PT_LOAD).find do |load|
        address >= load[:address] && address < load[:address] + load[:file_size]
      end
      raise Invalid, "#{path} points outside itself" unless segment

      address - segment[:address] + segment[:offset]
    end

    def string(index)
      raise Invalid, "#{path} has no string table" unless entry(DT_STRTAB)

      text(offset_of(entry(DT_STRTAB)) + index)
    end

    # Names longer than any that is looked for may be cut off.
    def text(offset) = read(offset, (size - offset).clamp(0, 512)).unpack1("Z*")
  end
end
