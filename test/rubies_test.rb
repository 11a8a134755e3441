# frozen_string_literal: true

require "test_helper"
require "rubies"

# The tests that depend on the interpreter, on the Rubies that CULET_TEST_RUBIES names, each with a copy of this checkout
# whose extension is built for it.
class RubiesTest < Minitest::Test
  # Below test/. Files that need gems with extensions, a server or a browser are not among them.
  FILES = %w[
    agent/{copy,crowd,detail,figures,hostile,listener,objects}
    feature_index/{feature_index,store}
    profile/{agent,api,ends,fork,labels,leaks,merge,objects,ruby_frames,stress,truth}
    retain/{answers,dominators,growth,heapsnapshot,holders,looks,samples}
    requires/{calls,tree,unused}
    strings/{analysis,dump,each_string}
    trim/{return,settings,warmup}
  ].flat_map { |pattern| Dir.glob("#{pattern}_test.rb", base: __dir__).sort }.freeze
  # What the files need, in Ruby alone.
  GEMS = %w[minitest terminal-table unicode-display_width unicode-emoji].freeze
  PATIENCE_SECONDS = 900

  # @return [String] a copy of the checkout for a Ruby, made once
  def self.checkout(ruby)
    @checkouts ||= {}
    @checkouts[ruby.path] ||= TestHelper.lasting_folder.tap { |folder| ruby.checkout(folder) }
  end

  def setup
    skip_unless_all
  end

  def test_there_are_files
    assert_operator FILES.size, :>, 20
  end

  Rubies.all.drop(1).each do |ruby|
    FILES.each do |file|
      define_method("test_#{file.delete_suffix("_test.rb")}_on#{ruby.path.tr("^A-Za-z0-9.", "_")}") { try(ruby, file) }
    end
  end

  private

  # With the gems of this Ruby: others may have none.
  def try(ruby, file)
    folder = self.class.checkout(ruby)
    gems = GEMS.flat_map { |name| Gem::Specification.find_by_name(name).full_require_paths }.map { |path| "-I#{path}" }
    out, err, status = run_program(ruby.path, "-w", *gems, "-I#{folder}/lib", "-I#{folder}/test", "#{folder}/test/#{file}",
                                   env: { "RUBYOPT" => nil, "RUBYLIB" => nil, "CULET_TEST_RUBIES" => nil }, chdir: folder, patience: PATIENCE_SECONDS)
    assert_predicate status, :success?, "#{ruby.description}:\n#{out}#{err}"
    assert_match(/^\d+ runs, [1-9]/, out)
  end
end
