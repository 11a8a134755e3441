# frozen_string_literal: true

require "test_helper"
require "objspace"
require "culet/system/elf"

class ElfTest < Minitest::Test
  include Culet

  def libc = File.read("/proc/self/maps")[%r{ (/\S*/libc\.so\.6|/\S*/libc-2\.\d+\.so)$}, 1]

  def test_libc_defines_what_it_exports_and_nothing_else
    elf = Elf.new(libc)
    assert elf.defines?("malloc")
    assert_operator elf.symbol("malloc").size, :>, 0
    refute elf.defines?("culet_version")
    assert_equal "libc.so.6", elf.soname
    refute_predicate elf, :static?
  end

  def test_a_program_that_only_uses_malloc_does_not_define_it
    refute Elf.new("/proc/self/exe").defines?("malloc")
    assert_includes Elf.new("/proc/self/exe").needed, "libc.so.6"
  end

  def test_symbols_are_found_in_a_stripped_library
    directory = new_folder
    source = "int alpha(void){return 1;} int beta(void){return 2;} const char gamma_text[] = \"text\"; extern int used; int *also(void){return &used;}"
    library = compile_c(File.join(directory, "lib.so"), source, "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,lib.so.7")
    run_program("strip", library)
    elf = Elf.new(library)
    %w[alpha beta gamma_text].each { |name| assert elf.defines?(name), name }
    %w[delta malloc alph used].each { |name| refute elf.defines?(name), name }
    assert_equal "text", elf.text_at(elf.symbol("gamma_text"))
    assert_equal "lib.so.7", elf.soname
  end

  # Of the symbol table if the file has one, which also names what is not exported; else of what it exports.
  def test_functions_have_names_by_their_addresses
    directory = new_folder
    source = "__attribute__((noinline)) static int hidden(void){return 1;} int shown(void){return hidden() + 1;}"
    library = compile_c(File.join(directory, "two.so"), source, "-shared", "-fPIC", "-nostdlib", "-O0")
    elf = Elf.new(library)
    names = elf.functions.to_h { |address| [elf.function_at(address), address] }
    assert_equal names["shown"], elf.symbol("shown").value
    assert_equal %w[hidden shown], [names["hidden"], names["shown"] + 1].map { |address| elf.function_at(address) }
    assert_nil elf.function_at(0)
    offset = elf.send(:offset_of, names["hidden"])
    assert_equal [names["hidden"], nil], [elf.address_at(offset), elf.address_at(1 << 40)]
    run_program("strip", library)
    stripped = Elf.new(library)
    assert_equal(["shown"], stripped.functions.map { |address| stripped.function_at(address) })
  end

  def test_a_static_program_is_recognised
    directory = new_folder
    program = static_program(directory)
    assert_predicate Elf.new(program), :static?
  end

  def test_what_is_no_elf_file_is_refused
    directory = new_folder
    path = File.join(directory, "x")
    ["", "\x7fELF", "#!/bin/sh\n", "\x7fELF#{"\xff" * 100}"].each do |content|
      File.binwrite(path, content)
      assert_raises(Elf::Invalid, content.inspect) { Elf.new(path).symbol("malloc") }
    end
  end

  # As many as a header can tell of, each a whole megabyte.
  def test_a_file_of_very_many_notes_is_not_read_for_ever
    path = File.join(new_folder, "x")
    note = [4, 0, 56 * 1000, 0, 0, 1 << 20, 0, 0].pack("L<2Q<6")
    header = ["\x7fELF\x02\x01".b, 62, 64, 56, 1000].pack("a18S<x12Q<x14S<2").ljust(64, "\0")
    File.binwrite(path, header + (note * 1000))
    File.truncate(path, 2 << 20)
    elf = Elf.new(path)
    assert_nil elf.build_id
    assert_operator elf.bytes_read, :<, 50 << 20
  end

  # All share one long name. The longest one counts of those at one address, and of these the last by name.
  def test_a_file_of_very_many_functions_takes_a_small_multiple_of_its_size
    path = of_functions(100_000) { |number| [number / 2 * 16, 8 - (number % 2)] }
    GC.start
    before = ObjectSpace.memsize_of_all
    elf = Elf.new(path)
    assert_equal [50_000, "n" * 400, nil], [elf.functions.size, elf.function_at(7), elf.function_at(8)]
    GC.start
    assert_operator ObjectSpace.memsize_of_all - before, :<, 6 * File.size(path)
  end

  # The names of all would be compared, each with the best one so far.
  def test_a_file_of_very_many_functions_at_one_address_is_not_read_for_ever
    elf = Elf.new(of_functions(250_000) { [16, 8] })
    compared = 0
    elf.define_singleton_method(:size_and_name) { |number| (compared += 1) && super(number) }
    assert_equal [[16], "n" * 400], [elf.functions, elf.function_at(20)]
    assert_operator compared, :<, 250_000
  end

  # Wherever a file is cut off, the answer is an answer or Elf::Invalid.
  def test_damaged_files_never_raise_anything_else
    whole = File.binread(Dir["#{RbConfig::CONFIG["rubyarchdir"]}/**/etc.so"].first)
    directory = new_folder
    path = File.join(directory, "x")
    random = Random.new(1)
    answers = Array.new(200) do |i|
      damaged = whole.dup
      i.even? ? damaged = damaged[0, random.rand(damaged.size)] : 20.times { damaged.setbyte(random.rand(1024), random.rand(256)) }
      File.binwrite(path, damaged)
      elf = Elf.new(path)
      elf.functions.each { |address| elf.function_at(elf.address_at(address).to_i) }
      elf.defines?("malloc")
    rescue Elf::Invalid
      :invalid
    end
    assert_equal [false, :invalid], answers.uniq.sort_by(&:to_s), "some can be read, some cannot, none defines malloc"
  end

  private

  # @yieldreturn [Array(Integer, Integer)] address and size of each function
  # @return [String] path of a file with a table of functions that have the same name
  def of_functions(count, &each)
    symbols = Array.new(count, &each).map { |address, size| [0, 2, 0, 1, address, size].pack("L<CCS<Q<2") }.join
    names = "#{"n" * 1000}\0"
    sections = [[2, 192 + names.bytesize, symbols.bytesize, 1], [3, 192, names.bytesize, 0]].map { |type, at, bytes, link| [0, type, 0, 0, at, bytes, link].pack("L<2Q<4L<").ljust(64, "\0") }
    header = ["\x7fELF\x02\x01".b, 62, 64, 64, 2].pack("a18S<x20Q<x10S<2").ljust(64, "\0")
    File.join(new_folder, "x").tap { |path| File.binwrite(path, [header, *sections, names, symbols].join) }
  end

  def static_program(directory)
    compile_c(File.join(directory, "static"), "#include <stdio.h>\nint main(void) { puts(\"static\"); return 0; }", "-static")
  end
end
