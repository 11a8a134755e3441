# frozen_string_literal: true

require "tsort"
require_relative "test_helper"

# The folders of the extension: which file reads what, and which may include which.
class NativeRoomsTest < Minitest::Test
  EXTENSION = File.join(TestHelper::ROOT, "ext/culet")
  # What only one folder may name.
  KEPT = { "statm|smaps_rollup|memory\\.stat" => "reading", "\\bclock_gettime\\b" => "reading", "\\bmallinfo2?\\b" => "reading" }.freeze

  KEPT.each do |word, room|
    define_method("test_only_#{room}_names_#{word.gsub(/\W+/, "_")}") do
      naming = files.select { |file| source(file).match?(/#{word}/) }
      refute_empty naming
      assert_empty(naming.reject { |file| file.start_with?("#{room}/") })
    end
  end

  def test_files_do_not_include_each_other_in_a_ring
    assert_empty rings(units)
  end

  def test_folders_do_not_include_each_other_in_a_ring
    folders = Hash.new { |hash, folder| hash[folder] = [] }
    units.each { |unit, included| folders[File.dirname(unit)] |= included.map { |other| File.dirname(other) } - [File.dirname(unit)] }
    assert_empty rings(folders.to_h)
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
      body = File.file?(File.join(EXTENSION, "#{unit}.c")) ? source("#{unit}.c") : ""
      declared.reject { |name| body.match?(/^(?:[\w *]+\s\*?)?#{name}\(/) }.map { |name| "#{unit}.h: #{name}" }
    end
    assert_empty missing
  end

  private

  def files = @files ||= Dir.glob("**/*.[ch]", base: EXTENSION)

  # Without comments.
  def source(file) = File.read(File.join(EXTENSION, file)).gsub(%r{/\*.*?\*/}m, "")

  # @return [Hash{String => Array<String>}] a C file with its header => those that either includes, without endings
  def units
    files.group_by { |file| file.delete_suffix(File.extname(file)) }.to_h do |unit, pair|
      included = pair.flat_map { |file| source(file).scan(/^\s*#\s*include\s+"([^"]+)"/).flatten }
      [unit, (included & files).map { |file| file.delete_suffix(File.extname(file)) }.uniq - [unit]]
    end
  end

  def rings(graph)
    each_file = ->(&block) { graph.each_key(&block) }
    each_included = ->(file, &block) { graph.fetch(file, []).each(&block) }
    TSort.each_strongly_connected_component(each_file, each_included).select { |ring| ring.size > 1 }
  end
end
