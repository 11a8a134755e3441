# frozen_string_literal: true

require "tsort"
require_relative "test_helper"

# The folders of lib/culet: which of them a program loads, and which of them may require which.
class RoomsTest < Minitest::Test
  LIBRARY = File.join(TestHelper::ROOT, "lib")
  # What a program requires by name and runs with.
  ENTRIES = %w[culet culet/auto culet/require culet/agent culet/unused culet/profile culet/limit culet/blackbox culet/metrics].freeze
  # A folder => what its files may not require.
  FORBIDDEN = { "text" => %w[system runtime scope model tools cli], "system" => %w[text runtime scope model tools cli], "runtime" => %w[text scope tools cli],
                "model" => %w[runtime scope tools cli],
                "scope" => %w[text runtime model tools cli], "tools" => %w[cli] }.freeze

  ENTRIES.each do |entry|
    define_method("test_#{entry.tr("/", "_")}_loads_runtime_system_and_model_alone") do
      files = loaded(entry)
      assert_includes files, "#{entry}.rb"
      assert_empty files.grep_v(%r{\A(?:culet|culet/[^/]+|culet/(?:runtime|system|model)/.+)\.(?:rb|so)\z})
    end
  end

  FORBIDDEN.each do |folder, others|
    define_method("test_#{folder}_requires_no_file_of_#{others.join("_")}") do
      requires = files("culet/#{folder}/").to_h { |file| [file, required(file).grep(%r{\Aculet/(?:#{others.join("|")})(?:/|\.rb)})] }
      assert_empty requires.reject { |_, found| found.empty? }
    end
  end

  def test_text_requires_errors_alone_beside_itself
    assert_equal ["culet/errors.rb"], files("culet/text/").flat_map { |file| required(file) }.uniq.reject { |file| file.start_with?("culet/text/") }
  end

  def test_files_do_not_require_each_other_in_a_ring
    graph = files("").to_h { |file| [file, required(file, indented: false)] }
    each_file = ->(&block) { graph.each_key(&block) }
    each_required = ->(file, &block) { graph.fetch(file, []).each(&block) }
    rings = TSort.each_strongly_connected_component(each_file, each_required).select { |ring| ring.size > 1 }
    assert_empty rings
  end

  private

  def files(folder) = Dir.glob("#{folder}**/*.rb", base: LIBRARY)

  # @param indented [Boolean] whether a require inside a method counts too
  # @return [Array<String>] files of lib that one requires
  def required(file, indented: true)
    File.read(File.join(LIBRARY, file)).scan(/^#{"\s*" if indented}require(_relative)? "([^"]+)"/).filter_map do |relative, name|
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
