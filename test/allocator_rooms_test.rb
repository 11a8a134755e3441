# frozen_string_literal: true

require "tsort"
require_relative "test_helper"

# The C parts: their files depend on each other in one direction. And comments stand on their own.
class AllocatorRoomsTest < Minitest::Test
  ROOT = TestHelper::ROOT
  # A part => the folders that its programs are compiled with (-I).
  PARTS = { "allocator/src" => [], "sampler" => ["replay/interposer"], "reader/src" => ["reader/src"], "boot/syscall_counter/src" => [],
            "replay" => %w[replay/recorder], "ext/culet" => %w[ext/culet], "boot/ext" => %w[boot/ext] }.freeze
  # The beginning of a function that other files can call: its name, and the first line of its parameters.
  DEFINITION = /^(?!static\b|typedef\b|extern\b|#)[a-z][\w *]*\b(\w+)\([^;{]*$/
  # The beginning of a comment that says nothing without the one before it.
  LEANING = %r{(?:/\*|//|#) *(?:The same\b|As above\b|Inside\.|Nor (?:has|is|does)\b)}

  PARTS.each do |part, folders|
    define_method("test_files_of_#{part.tr("/", "_")}_depend_on_each_other_in_one_direction") do
      paths = Dir.glob("#{part}/**/*.{c,h}", base: ROOT).grep_v(%r{/(?:test|build)/})
      units = paths.group_by { |path| path.delete_suffix(File.extname(path)) }
      refute_empty units
      graph = included(units, folders).merge(called(units)) { |_, headers, callees| headers | callees }
      assert_empty rings(graph)
      assert_empty rings(between_folders(included(units, folders)))
    end
  end

  def test_comments_stand_on_their_own
    sources = IO.popen(%w[git ls-files -z *.c *.h *.rb *.js], chdir: ROOT, &:read).split("\0")
    refute_empty sources
    assert_empty sources.flat_map { |path| read(path).lines.grep(LEANING).map { |line| "#{path}: #{line.strip}" } }
  end

  private

  def read(path) = File.read(File.join(ROOT, path))

  def rings(graph)
    uses = ->(unit, &block) { graph.fetch(unit).each(&block) }
    TSort.each_strongly_connected_component(graph.method(:each_key), uses).select { |ring| ring.size > 1 }
  end

  def between_folders(graph)
    graph.group_by { |unit,| File.dirname(unit) }.to_h do |folder, uses|
      [folder, uses.flat_map { |_, others| others.map { |other| File.dirname(other) } }.uniq - [folder]]
    end
  end

  # @param units [Hash] a path without extension => its files
  # @param folders [Array<String>] where headers are looked for beside the unit's own folder
  # @return [Hash] a unit => the units whose headers it includes
  def included(units, folders)
    units.to_h do |unit, paths|
      names = paths.flat_map { |path| read(path).scan(/^ *#include ["<]([^">]+)/).flatten }
      found = [File.dirname(unit), *folders].product(names).map { |folder, name| File.expand_path(File.join("/", folder, name))[1..].delete_suffix(".h") }
      [unit, found & (units.keys - [unit])]
    end
  end

  # @return [Hash] a unit => the units that define functions it calls; what is called is indented, what is declared is not
  def called(units)
    code = units.transform_values { |paths| paths.map { |path| read(path).gsub(%r{/\*.*?\*/}m, "").gsub(/"[^"\n]*"/, "") }.join }
    homes = Hash.new { |hash, name| hash[name] = [] }
    code.each { |unit, text| text.scan(DEFINITION) { |name,| homes[name] << unit } }
    code.to_h do |unit, text|
      names = text.scan(/^[ \t].*/).flat_map { |line| line.scan(/\w+(?=\()/) }.uniq
      [unit, names.flat_map { |name| homes.fetch(name, []).then { |found| found.include?(unit) ? [] : found } }.uniq]
    end
  end
end
