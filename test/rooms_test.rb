# frozen_string_literal: true

require "tsort"
require_relative "test_helper"

# The folders of lib/culet: which of them a program loads, and which of them may require which.
class RoomsTest < Minitest::Test
  LIBRARY = File.join(TestHelper::ROOT, "lib")
  # What a program requires by name and runs with.
  ENTRIES = %w[culet culet/auto culet/require culet/agent culet/unused culet/profile culet/limit culet/blackbox culet/metrics].freeze
  ROOMS = %w[system runtime scope model text render allocators benchmark tools cli].freeze
  # A room => the rooms that its files may require beside itself.
  ALLOWED = { "system" => [], "runtime" => %w[system model text], "scope" => %w[system], "model" => %w[system text], "text" => [], "render" => %w[scope text],
              "allocators" => %w[system runtime], "benchmark" => %w[system model text render allocators],
              "tools" => ROOMS - %w[cli], "cli" => ROOMS }.freeze

  ENTRIES.each do |entry|
    define_method("test_#{entry.tr("/", "_")}_loads_no_tool") do
      files = loaded(entry)
      assert_includes files, "#{entry}.rb"
      assert_empty files.grep_v(%r{\A(?:culet|culet/[^/]+|culet/(?:runtime|system|model|text)/.+)\.(?:rb|so)\z})
    end
  end

  ALLOWED.each do |room, others|
    define_method("test_#{room}_requires_#{others.empty? ? "itself_alone" : others.join("_")}") do
      found = files("culet/#{room}/").to_h { |file| [file, required(file).map { |one| room(one) }.compact.uniq - [room, *others]] }
      assert_empty found.reject { |_, rooms| rooms.empty? }
    end
  end

  def test_tools_require_no_other_tool
    found = files("culet/tools/").flat_map { |file| required(file).map { |one| [tool(file), tool(one)] } }
    assert_empty found.select { |one, other| other && one != other }.uniq
  end

  def test_text_requires_errors_alone_beside_itself
    assert_equal ["culet/errors.rb"], files("culet/text/").flat_map { |file| required(file) }.uniq.reject { |file| file.start_with?("culet/text/") }
  end

  def test_files_do_not_require_each_other_in_a_ring
    graph = files("").to_h { |file| [file, required(file)] }
    each_file = ->(&block) { graph.each_key(&block) }
    each_required = ->(file, &block) { graph.fetch(file, []).each(&block) }
    rings = TSort.each_strongly_connected_component(each_file, each_required).select { |ring| ring.size > 1 }
    assert_empty rings
  end

  def test_the_monotonic_clock_is_read_in_one_place
    sources = files("").to_h { |file| [file, File.read(File.join(LIBRARY, file))] }
    assert_equal ["culet/system/clock.rb"], sources.select { |_, source| source.match?(/\bdef (?:self\.)?now\b|CLOCK_MONOTONIC\)/) }.keys
  end

  private

  def files(folder) = Dir.glob("#{folder}**/*.rb", base: LIBRARY)

  # @return [String, nil] the room of a file of lib; nil: what programs require by name, and what all rooms may
  def room(file) = ROOMS.find { |one| file.start_with?("culet/#{one}/") || file == "culet/#{one}.rb" }

  def tool(file) = file[%r{\Aculet/tools/([^/.]+)}, 1]

  # @return [Array<String>] files of lib that one requires, also where a method does
  def required(file)
    File.read(File.join(LIBRARY, file)).scan(/^[^#\n]*?\brequire(_relative)? "([^"#]+)"/).filter_map do |relative, name|
      path = relative ? File.expand_path(name, "/#{File.dirname(file)}").delete_prefix("/") : name
      "#{path}.rb" if File.file?(File.join(LIBRARY, "#{path}.rb"))
    end
  end

  # @return [Array<String>] what a program has of lib after it required an entry
  def loaded(entry)
    code = "puts $LOADED_FEATURES.select { |path| path.start_with?(ARGV[0]) }"
    out, status = Open3.capture2(RbConfig.ruby, "-I#{LIBRARY}", "-r#{entry}", "-e", code, "#{LIBRARY}/")
    assert_predicate status, :success?
    out.lines(chomp: true).map { |path| path.delete_prefix("#{LIBRARY}/") }
  end
end
