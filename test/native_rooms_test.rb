# frozen_string_literal: true

require_relative "test_helper"
require "culet/system/processes/identity"

# The extensions: which file reads what, and which may include which. allocator_rooms_test.rb looks for rings.
class NativeRoomsTest < Minitest::Test
  ROOT = TestHelper::ROOT
  # The memory side, and boot.
  EXTENSIONS = %w[ext/culet boot/ext].freeze
  # What only one folder may name.
  KEPT = { "statm|smaps_rollup|memory\\.stat" => "reading", "\\bclock_gettime\\b" => "reading", "\\bmallinfo2?\\b" => "reading" }.freeze

  KEPT.each do |word, room|
    define_method("test_only_#{room}_names_#{word.gsub(/\W+/, "_")}") do
      naming = files.select { |file| source(file).match?(/#{word}/) }
      refute_empty naming
      assert_empty(naming.reject { |file| file.start_with?("ext/culet/#{room}/") })
    end
  end

  def test_the_memory_side_does_not_include_boot
    assert_empty files.select { |file| file.start_with?("ext/") && included(file).any? { |path| path.start_with?("boot/") } }
  end

  # What both compile: facts, and no tool.
  def test_boot_includes_common_and_reading_alone_of_the_memory_side
    found = files.grep(%r{\Aboot/}).flat_map { |file| included(file) }.grep(%r{\Aext/}).map { |path| path[%r{\Aext/culet/[^/]+}] }
    assert_equal %w[ext/culet/common ext/culet/reading], found.uniq.sort
  end

  # Each has a copy of what both compile, whose names must not lead from one to the other. A development version of Ruby adds
  # the number of its binary interface.
  def test_an_extension_exports_its_beginning_alone
    { "culet.so" => "Init_culet", "culet_boot.so" => "Init_culet_boot" }.each do |file, beginning|
      out, = assert_success("nm", "-D", "--defined-only", "#{ROOT}/lib/culet/#{file}")
      assert_equal [beginning], out.scan(/ [A-Z] (\w+)$/).flatten - %w[ruby_abi_version], file
    end
  end

  def test_the_memory_side_contains_no_function_of_boot
    boot = files.grep(%r{\Aboot/.*\.c\z}).flat_map { |file| source(file).scan(/^(?!static)[a-z][\w *]*[ *](culet_\w+)\([^;{]*\)\s*\{/m).flatten }
    assert_operator boot.size, :>, 50
    out, = assert_success("nm", "#{ROOT}/lib/culet/culet.so")
    assert_includes out, "culet_release_find"
    assert_empty boot & out.scan(/ [a-zA-Z] (\w+)$/).flatten
  end

  def test_all_forked_copies_are_known_by_their_names
    names = source("ext/culet/agent/copy_tasks.c").scan(/\.name = "([^"]+)"/).flatten
    assert_equal names.sort, Culet::Processes::Identity::COPIES.sort
  end

  # A declaration beside the code that calls it would hide an include.
  def test_functions_of_other_files_are_declared_in_headers
    declared = files.grep(/\.c\z/).select { |file| source(file).match?(/^extern\s[^;{]*\bculet_\w+\(/) }
    assert_empty declared
  end

  # A file has its header's functions, so that a header that is included says which file is called.
  def test_a_public_function_is_defined_beside_its_header
    names = files.grep(/\.h\z/).to_h { |file| [file.delete_suffix(".h"), source(file).scan(/^(?!static|typedef)\w[\w *]*[ *](culet_\w+)\([^;{]*\)[^;{]*;/m).flatten] }
    missing = names.flat_map do |unit, declared|
      body = File.file?(File.join(ROOT, "#{unit}.c")) ? source("#{unit}.c") : ""
      declared.reject { |name| body.match?(/^(?:[\w *]+\s\*?)?#{name}\(/) }.map { |name| "#{unit}.h: #{name}" }
    end
    assert_empty missing
  end

  private

  def files = @files ||= EXTENSIONS.flat_map { |folder| Dir.glob("#{folder}/**/*.[ch]", base: ROOT) }

  # Without comments.
  def source(file) = File.read(File.join(ROOT, file)).gsub(%r{/\*.*?\*/}m, "")

  # @return [Array<String>] the headers of this checkout that a file includes
  def included(file)
    names = source(file).scan(/^\s*#\s*include\s+"([^"]+)"/).flatten
    # Boot's own files come first, as on its compiler's command line.
    places = [*("boot/ext" if file.start_with?("boot/")), "ext/culet", "."]
    names.filter_map { |name| places.map { |place| File.join(place, name).delete_prefix("./") }.find { |path| File.file?(File.join(ROOT, path)) } }
  end
end
