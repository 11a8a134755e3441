# frozen_string_literal: true

require "pathname"
require "tsort"
require_relative "test_helper"

# The folders of lib/culet, and boot: which of them a program loads, and which of them may require which.
class RoomsTest < Minitest::Test
  ROOT = TestHelper::ROOT
  LIBRARY = File.join(ROOT, "lib")
  # What a program requires by name and runs with.
  ENTRIES = %w[culet culet/auto culet/agent culet/profile culet/limit culet/blackbox culet/metrics].freeze
  # Those that lead to boot, and what of the memory side they load besides.
  BOOT_ENTRIES = { "culet/require" => %r{\Alib/culet/(?:require|rails_hook|native|errors)\.rb\z},
                   "culet/feature_index" => %r{\Alib/culet/(?:feature_index|native|errors)\.rb\z},
                   "culet/unused" => %r{\Alib/culet(?:/(?:unused|rails_hook|native|errors|agent|version)|/system/clock)?\.rb\z|\Alib/culet/culet\.so\z} }.freeze
  # The files of lib that know boot: what programs require by name, and the verbs.
  KNOW_BOOT = [*BOOT_ENTRIES.keys.map { |entry| "#{entry}.rb" }, *Dir.glob("culet/cli/{explain,require*}.rb", base: LIBRARY)].freeze
  ROOMS = %w[system runtime scope model text render allocators benchmark tools cli].freeze
  # A room => the rooms that its files may require beside itself.
  ALLOWED = { "system" => [], "runtime" => %w[system model text], "scope" => %w[system], "model" => %w[system scope text], "text" => [], "render" => %w[scope text],
              "allocators" => %w[system runtime], "benchmark" => %w[system model text render allocators],
              "tools" => ROOMS - %w[cli], "cli" => ROOMS }.freeze

  ENTRIES.each do |entry|
    define_method("test_#{entry.tr("/", "_")}_loads_no_tool") do
      files = loaded(entry)
      assert_includes files, "#{entry}.rb"
      refute_includes files, "culet/culet_boot.so"
      assert_empty files.grep_v(%r{\A(?:culet|culet/[^/]+|culet/(?:runtime|system|model|text)/.+)\.(?:rb|so)\z})
    end
  end

  BOOT_ENTRIES.each do |entry, beside|
    define_method("test_#{entry.tr("/", "_")}_loads_boot_and_little_else") do
      files = loaded(entry, ROOT)
      assert_includes files, "lib/culet/culet_boot.so"
      assert_empty(files.reject { |file| file.start_with?("boot/lib/") || file == "lib/culet/culet_boot.so" || beside.match?(file) })
      assert_empty files.grep(%r{\Aboot/lib/report})
    end
  end

  ALLOWED.each do |room, others|
    define_method("test_#{room}_requires_#{others.empty? ? "itself_alone" : others.join("_")}") do
      found = files("culet/#{room}/").to_h { |file| [file, required(file).map { |one| room(one) }.compact.uniq - [room, *others]] }
      assert_empty found.reject { |_, rooms| rooms.empty? }
    end
  end

  def test_the_memory_side_does_not_require_boot
    assert_equal KNOW_BOOT.sort, files("").select { |file| required(file).any? { |one| one.start_with?("../boot/") } }.sort
    assert_empty((files("") - KNOW_BOOT).select { |file| source(file).match?(%r{\bboot/(?:lib|ext)\b|\bBoot\b}) })
  end

  def test_boot_requires_facts_and_pages_of_the_memory_side
    found = boot_files.to_h { |file| [file, required(file).map { |one| room(one) }.compact.uniq - %w[system model text render]] }
    refute_empty found
    assert_empty found.reject { |_, rooms| rooms.empty? }
    files_of_no_room = boot_files.flat_map { |file| required(file) }.reject { |one| one.start_with?("../boot/") || room(one) }
    assert_equal %w[culet/agent.rb culet/errors.rb culet/native.rb culet/version.rb], files_of_no_room.uniq.sort
  end

  def test_tools_require_no_other_tool
    found = files("culet/tools/").flat_map { |file| required(file).map { |one| [tool(file), tool(one)] } }
    assert_empty found.select { |one, other| other && one != other }.uniq
  end

  def test_text_requires_errors_alone_beside_itself
    assert_equal ["culet/errors.rb"], files("culet/text/").flat_map { |file| required(file) }.uniq.reject { |file| file.start_with?("culet/text/") }
  end

  def test_files_do_not_require_each_other_in_a_ring
    graph = (files("") + boot_files).to_h { |file| [file, required(file)] }
    each_file = ->(&block) { graph.each_key(&block) }
    each_required = ->(file, &block) { graph.fetch(file, []).each(&block) }
    rings = TSort.each_strongly_connected_component(each_file, each_required).select { |ring| ring.size > 1 }
    assert_empty rings
  end

  def test_the_monotonic_clock_is_read_in_one_place
    sources = (files("") + boot_files).to_h { |file| [file, source(file)] }
    assert_equal ["culet/system/clock.rb"], sources.select { |_, source| source.match?(/\bdef (?:self\.)?now\b|CLOCK_MONOTONIC\)/) }.keys
  end

  private

  def files(folder) = Dir.glob("#{folder}**/*.rb", base: LIBRARY)

  # As the files of lib name them.
  def boot_files = Dir.glob("../boot/lib/**/*.rb", base: LIBRARY)

  def source(file) = File.read(File.join(LIBRARY, file))

  # @return [String, nil] the room of a file of lib; nil: what programs require by name, and what all rooms may
  def room(file) = ROOMS.find { |one| file.start_with?("culet/#{one}/") || file == "culet/#{one}.rb" }

  def tool(file) = file[%r{\Aculet/tools/([^/.]+)}, 1]

  # @return [Array<String>] files of lib and boot that one requires, also where a method does
  def required(file)
    source(file).scan(/^[^#\n]*?\brequire(_relative)? "([^"#]+)"/).filter_map do |relative, name|
      path = File.expand_path(name, relative ? File.dirname(File.join(LIBRARY, file)) : LIBRARY)
      Pathname.new("#{path}.rb").relative_path_from(LIBRARY).to_s if File.file?("#{path}.rb")
    end
  end

  # @return [Array<String>] what a program has of a folder after it required an entry
  def loaded(entry, folder = LIBRARY)
    code = "puts $LOADED_FEATURES.select { |path| path.start_with?(ARGV[0]) }"
    out, status = Open3.capture2(RbConfig.ruby, "-I#{LIBRARY}", "-r#{entry}", "-e", code, "#{folder}/")
    assert_predicate status, :success?
    out.lines(chomp: true).map { |path| path.delete_prefix("#{folder}/") }
  end
end
