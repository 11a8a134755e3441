# frozen_string_literal: true

require_relative "require_helper"

# The file that culet/require keeps its index in, and what happens when it, or the folders, are not as they were.
class FeatureIndexStoreTest < Minitest::Test
  include RequireHelper

  # What tests change is a set of folders of its own.
  SETS = %w[kept before nowhere gone below].freeze
  CONTENTS = SETS.flat_map do |set|
    { "early/other.rb" => "", "early/deep/other.rb" => "", "late/one.rb" => "puts 'late one'", "late/deep/two.rb" => "puts 'late two'",
      "late/gone.rb" => "puts :gone", "later/gone.rb" => "puts 'later gone'" }.map { |path, text| ["#{set}/#{path}", text] }
  end.to_h.freeze

  def self.files
    @files ||= Files.new(CONTENTS).tap do |files|
      Minitest.after_run { files.remove }
      files.settle
    end
  end

  def setup
    @files = self.class.files
    @cache = new_folder
  end

  attr_reader :cache

  def test_built_by_the_first_and_shared_by_the_others
    first, second = Array.new(2) { ours("require 'one'; require 'deep/two'") }
    assert_equal [1, 0], [first, second].map { |run| run.figures["builds"] }
    [first, second].each { |run| assert_equal ["late one\nlate two\n", true, 0], [run.out, run.figures["shared"], run.figures["asked"]] }
    assert_equal 0o700, File.stat(cache).mode & 0o777
    assert_equal [0o400], indexes.map { |file| File.stat(file).mode & 0o777 }
    assert_empty Dir.glob("#{cache}/*.part")
  end

  def test_a_file_that_is_cut_off_while_it_is_used_does_no_harm
    ours("require 'one'")
    run = ours("require 'one'; File.chmod(0600, ENV['INDEX']); File.truncate(ENV['INDEX'], 0); require 'deep/two'; p Culet::Require.figures[:found] >= 2",
               { "INDEX" => indexes.first })
    assert_equal ["late one\nlate two\ntrue\n", ""], [run.out, run.err]
  end

  def test_many_that_start_at_once
    command = command("require 'one'; require 'deep/two'; puts Culet::Require.figures[:asked]")
    pids = Array.new(12) do |number|
      spawn(environment, *command, out: "#{cache}/out#{number}", err: "#{cache}/err#{number}")
    end
    assert(pids.map { |pid| Process.wait2(pid).last.success? }.all?, -> { Dir.glob("#{cache}/err*").map { |file| File.read(file) }.join })
    assert_equal ["late one\nlate two\n0\n"], Dir.glob("#{cache}/out*").map { |file| File.read(file) }.uniq
    assert_empty Dir.glob("#{cache}/err*").map { |file| File.read(file) }.reject(&:empty?)
    assert_empty Dir.glob("#{cache}/*.part")
    assert_equal 0, ours("require 'one'").figures["builds"]
  end

  DAMAGES = { "empty" => "", "cut" => ->(text) { text[0, text.size / 2] }, "other bytes" => ->(text) { text.tap { text.setbyte(text.size / 2, 77) } },
              "of another program" => "#!/bin/sh\nexit\n" * 100, "of another release" => ->(text) { text.tap { text.setbyte(8, 200) } } }.freeze

  DAMAGES.each do |name, damage|
    define_method("test_a_file_that_is_#{name.tr(" ", "_")}_is_made_anew") do
      ours("require 'one'")
      text = damage.respond_to?(:call) ? damage.call(File.binread(indexes.first)) : damage
      FileUtils.rm_f(indexes.first)
      File.binwrite(indexes.first || index_name, text)
      run = ours("require 'one'")
      assert_equal ["late one\n", "", 1, true], [run.out, run.err, run.figures["builds"], run.figures["shared"]]
      assert_equal 0, ours("require 'one'").figures["builds"]
    end
  end

  def test_a_file_that_others_may_write_is_not_trusted
    ours("require 'one'")
    File.chmod(0o666, indexes.first)
    assert_equal 1, ours("require 'one'").figures["builds"]
    assert_equal [0o400], indexes.map { |file| File.stat(file).mode & 0o777 }
  end

  def test_an_unwritable_folder_is_told_once_and_done_without
    FileUtils.touch("#{cache}/file")
    run = run_and_tell(command("require 'one'; require 'deep/two'; $LOAD_PATH.unshift('/usr/share'); require 'other'"), Dir.tmpdir,
                       "TOLD" => "#{cache}/told", "CULET_REQUIRE_CACHE" => "#{cache}/file/below")
    assert_equal "late one\nlate two\n", run.out
    sentence = "culet: the load-path index is not saved: cannot write .*file/below/.*: Not a directory; " \
               "set CULET_REQUIRE_CACHE to another folder\n"
    assert_match(/\A#{sentence}\z/, run.err)
    assert_equal [false, true], [run.figures["shared"], run.figures["found"] >= 3]
  end

  def test_a_relative_folder_is_told_of
    { "index" => "culet: CULET_REQUIRE_CACHE is not an absolute path; the index is not saved\n",
      "\xFF" => "culet: CULET_REQUIRE_CACHE is not an absolute path; the index is not saved\n", "#{cache}/\xFF" => "" }.each do |folder, sentence|
      run = run_and_tell(command("require 'one'"), Dir.tmpdir, "TOLD" => "#{cache}/told", "CULET_REQUIRE_CACHE" => folder)
      assert_equal ["late one\n", sentence, sentence.empty?], [run.out, run.err, run.figures["shared"]]
    end
  end

  def test_without_a_home
    run = run_and_tell(command("require 'one'"), Dir.tmpdir, "TOLD" => "#{cache}/told", "CULET_REQUIRE_CACHE" => nil, "HOME" => nil, "XDG_CACHE_HOME" => nil)
    assert_equal ["late one\n", "", false], [run.out, run.err, run.figures["shared"]]
  end

  def test_where_it_is_by_default
    run_and_tell(command("require 'one'"), Dir.tmpdir,
                 "TOLD" => "#{cache}/told", "CULET_REQUIRE_CACHE" => nil, "HOME" => "#{cache}/home", "XDG_CACHE_HOME" => nil)
    run_and_tell(command("require 'one'"), Dir.tmpdir,
                 "TOLD" => "#{cache}/told", "CULET_REQUIRE_CACHE" => nil, "HOME" => "#{cache}/home", "XDG_CACHE_HOME" => "#{cache}/xdg")
    assert_equal 2, (Dir.glob("#{cache}/home/.cache/culet/require/ruby-*.index") + Dir.glob("#{cache}/xdg/culet/require/ruby-*.index")).size
  end

  def test_settings
    off = run_and_tell(command("require 'one'; p Kernel.instance_method(:require).source_location.nil?"), Dir.tmpdir,
                       "TOLD" => "#{cache}/told", "CULET_REQUIRE" => "off")
    assert_equal [{}, ""], [off.figures, off.err]
    index = run_and_tell(command("require 'one'"), Dir.tmpdir, "TOLD" => "#{cache}/told", "CULET_REQUIRE" => "index")
    assert_equal [false, true], [index.figures["real_paths"], index.figures["found"].positive?]
    assert ours("require 'one'").figures["real_paths"]
    wrong = run_and_tell(command("require 'one'"), Dir.tmpdir, "TOLD" => "#{cache}/told", "CULET_REQUIRE" => "fast")
    assert_equal ["culet: CULET_REQUIRE: 'fast' is not one of on, index, off; require is unchanged\n", "late one\n"], [wrong.err, wrong.out]
  end

  # As where the gem's native part could not be built.
  def test_without_the_native_part
    copy_ruby_files("#{cache}/bare")
    FileUtils.rm_f(Dir.glob("#{cache}/bare/lib/culet/*.{so,txt}"))
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{cache}/bare/lib", "-rculet/require", "-rculet/feature_index", "-e",
                                   "p require('json'), Culet::Require.figures; Culet::FeatureIndex.new rescue p $!.class", env: environment)
    assert_equal ["true\n{}\nCulet::Error\n", 0], [out, status.exitstatus], err
    assert_match(/\Aculet: require is unchanged: culet_boot.so is not built: run .*\n\z/, err)
  end

  # Files that come and go while the index knows their folders, in the process that looks and before it starts.
  def test_a_file_that_comes_before_another
    ours("require 'one'", set: "before")
    run = ours(<<~RUBY, set: "before")
      require "one"
      File.write("#{folder("before")}/early/deep/two.rb", "puts 'early two'")
      sleep 0.06
      require "deep/two"
    RUBY
    assert_equal "late one\nearly two\n", run.out
    assert_equal "early two\n", ours("require 'deep/two'", set: "before").out
    File.unlink("#{folder("before")}/early/deep/two.rb")
    assert_equal "late two\n", ours("require 'deep/two'", set: "before").out
  end

  def test_a_file_that_was_nowhere
    run = ours(<<~RUBY, set: "nowhere")
      begin; require "fresh"; rescue LoadError => e; puts e.message; end
      File.write("#{folder("nowhere")}/early/fresh.rb", "puts :fresh")
      require "fresh"
      require "one"
    RUBY
    assert_equal "cannot load such file -- fresh\nfresh\nlate one\n", run.out
    assert_operator run.figures["nowhere"], :>=, 1
  end

  def test_a_file_that_goes
    ours("require 'one'", set: "gone")
    run = ours("require 'one'; File.unlink('#{folder("gone")}/late/gone.rb'); require 'gone'", set: "gone")
    assert_equal "late one\nlater gone\n", run.out
  end

  def test_what_changed_below_is_read_again
    ours("require 'one'", set: "below")
    # A program that starts two seconds later would make the index anew.
    late = run = nil
    (1..60).each do |number|
      late = "deep/new#{number}"
      written = Culet::Clock.now
      File.write("#{folder("below")}/early/#{late}.rb", "puts :new")
      run = ours("require '#{late}'; require 'deep/two'; require 'one'", set: "below")
      break if Culet::Clock.now - written < 2
    end
    assert_equal ["new\nlate two\nlate one\n", 1], [run.out, run.figures["asked"]]
    sleep AGE_SECONDS
    # Asked for something below it, the index sees that it is out of date, and is made anew at the next look.
    assert_equal 1, ours("require 'deep/two'; require 'one'", set: "below").figures["builds"]
    run = ours("require '#{late}'; require 'deep/two'; require 'one'", set: "below")
    assert_equal ["new\nlate two\nlate one\n", 0, 0], [run.out, run.figures["asked"], run.figures["builds"]]
  end

  # As `gem install` in another terminal does, and a Gemfile's `path:`.
  def test_a_gem_that_is_installed_while_it_runs
    home = new_folder
    FileUtils.mkdir_p(["#{home}/specifications", "#{home}/gems"])
    env = environment.merge("GEM_HOME" => home, "GEM_PATH" => home)
    out, err, status = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/require", "-e", <<~'RUBY', home, env: env)
      home = ARGV.first
      begin; require "arrives/inside"; rescue LoadError => e; puts e.message; end
      require "fileutils"
      FileUtils.mkdir_p("#{home}/gems/arrives-1.0/lib/arrives")
      File.write("#{home}/gems/arrives-1.0/lib/arrives/inside.rb", "puts :arrived")
      File.write("#{home}/specifications/arrives-1.0.gemspec", "Gem::Specification.new { |s| s.name = 'arrives'; s.version = '1.0'; s.summary = 's'; s.authors = ['a']; s.files = ['lib/arrives/inside.rb'] }")
      Gem.clear_paths
      p require("arrives/inside"), require("arrives/inside"), $LOADED_FEATURES.last == "#{home}/gems/arrives-1.0/lib/arrives/inside.rb"
    RUBY
    assert_predicate status, :success?, err
    assert_equal "cannot load such file -- arrives/inside\narrived\ntrue\nfalse\ntrue\n", out
  end

  private

  def indexes = Dir.glob("#{cache}/*.index")

  def index_name = "#{cache}/ruby-#{RUBY_VERSION[/\A\d+\.\d+/]}-#{RUBY_PLATFORM}.index"

  def folder(set) = File.join(@files.directory, set)

  def command(script, set: "kept")
    File.write("#{cache}/tell.rb", RequireHelper::TELL)
    folders = %w[early late later].map { |name| "-I#{folder(set)}/#{name}" }
    [RbConfig.ruby, "-w", *folders, "-I#{ROOT}/lib", "-r#{cache}/tell.rb", "-rculet/require", "-e", script]
  end

  def environment
    NEUTRAL.merge("CULET_ROOT" => ROOT, "TOLD" => "#{cache}/told", "CULET_REQUIRE" => nil, "CULET_REQUIRE_CACHE" => cache)
  end

  # A run with culet/require that ends well.
  def ours(script, more = {}, set: "kept")
    run_and_tell(command(script, set: set), Dir.tmpdir, "TOLD" => "#{cache}/told", **more).tap { |run| assert_equal 0, run.exitstatus, run.err }
  end
end
