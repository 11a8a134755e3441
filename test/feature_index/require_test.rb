# frozen_string_literal: true

require_relative "require_helper"

# With culet/require each `require` does what it does without.
class FeatureIndexRequireTest < Minitest::Test
  include RequireHelper

  # Each prints which file it is.
  def self.say(text) = "puts #{text.inspect}\n"

  LIBRARY = RbConfig::CONFIG["rubyarchdir"]

  CONTENTS = {
    "a/one.rb" => say("a/one"), "a/deep/down/two.rb" => say("a/two"), "a/both.rb" => say("a/both"), "a/name.with.dot.rb" => say("dots"),
    "a/raises.rb" => "raise IOError, 'from within'\n", "a/wrong.rb" => "def (\n", "a/missing.rb" => "require 'nothing/provides/this'\n",
    "a/round.rb" => "puts :round\nrequire 'again'\n", "a/again.rb" => "puts :again\nrequire 'round'\n", "a/slow.rb" => "sleep 0.2\nputs :slow\n",
    "a/Lazy.rb" => "module Lazy; HERE = __FILE__; end\n", "a/spaced name.rb" => say("spaced"), "a/.hidden.rb" => say("hidden"),
    "a/relative.rb" => "require_relative 'deep/down/two'\n", "a/thrown.rb" => "throw :out, :thrown\n", "a/leaves.rb" => "exit 7\n",
    "a/umlaut-\u00fc.rb" => say("umlaut"), "a/folder.rb/x.rb" => say("in a folder"), "a/stem/.keep" => "",
    "a/tracer.rb" => "Kernel.prepend(Module.new { def require(name) = (@calls = @calls.to_i + 1) && super })\n",
    "b/one.rb" => say("b/one"), "b/deep/down/two.rb" => say("b/two"), "b/deep/three.rb" => say("b/three"), "b/late.rb" => say("b/late"),
    "b/both.rb" => say("b/both"), "b/etc.rb" => say("etc of ours"), "b/folder.rb" => say("folder of b"), "b/stem/four.rb" => say("b/four"),
    "\u00fc/wide.rb" => say("wide"), "only/b.rb" => say("only"), "ruby/native.rb" => say("native.rb"), "real/lib/linked.rb" => say("linked"),
    "real/lib/sub/inner.rb" => say("inner"), "real/other/else.rb" => say("else"), "dangling/here.rb" => say("here")
  }.freeze

  def self.files
    @files ||= Files.new(CONTENTS).tap do |files|
      make_links(files.directory)
      FileUtils.mkdir_p("#{files.directory}/native")
      FileUtils.cp("#{LIBRARY}/etc.so", "#{files.directory}/native/etc.so")
      files.settle
      Minitest.after_run { files.remove }
    end
  end

  def self.make_links(directory)
    FileUtils.ln_s("real", "#{directory}/link")
    FileUtils.ln_s("../other", "#{directory}/real/lib/otherwise")
    FileUtils.ln_s("linked.rb", "#{directory}/real/lib/alias.rb")
    FileUtils.ln_s("nowhere", "#{directory}/dangling/nowhere.rb")
    FileUtils.ln_s(".", "#{directory}/only/loop")
  end

  def directory = self.class.files.directory

  def folders(*names) = names.map { |name| File.join(directory, name) }

  # For scripts: prints what a `require` returns, or the error that it raises.
  TRY = <<~'RUBY'
    def try(name)
      p [name, require(name)]
    rescue LoadError, StandardError, SyntaxError => e
      puts [name, e.class, e.message, (e.path if e.is_a?(LoadError)), e.cause.class, e.backtrace.size].inspect
      puts e.backtrace.map { |line| line.sub(/\d+/, "") } if e.backtrace.size < 12
    end
  RUBY

  def assert_names_as_plain(names, load_path: folders("a", "b"), before: "", **options)
    assert_as_plain("#{TRY}#{before}\n#{names.inspect}.each { |name| try(name) }\n", load_path: load_path, **options)
  end

  def test_names_with_and_without_extension
    run = assert_names_as_plain(%w[one one one.rb deep/down/two deep/down/two.rb deep/three both both.rb late late.rb late])
    assert_operator run.figures["found"], :>=, 5
    assert_equal 0, run.figures["asked"], "the folders were not indexed: #{run.figures}"
    assert run.figures["shared"]
  end

  def test_names_that_are_searched_in_other_ways
    names = ["./script.rb", "#{directory}/a/one", "#{directory}/a/one.rb", "~/nothing", "../x", "deep/../one", "deep//down/two", "/one", "", ".", "..",
             "a/", "one/", "name.with.dot", "name.with.dot.rb", "spaced name", ".hidden", "umlaut-\u00fc", "one.o", "one.so", "etc.o"]
    run = assert_names_as_plain(names.reject { |name| name == "./script.rb" })
    assert_operator run.figures["unsure"], :>, 10
  end

  # Ruby compares such a name with every file, to say what was meant.
  def test_a_long_name = assert_names_as_plain(["x" * 5000], flags: ["--disable-did_you_mean"])

  def test_objects_that_are_no_strings
    assert_as_plain(<<~'RUBY', load_path: folders("a", "b"))
      require "pathname"
      named = Class.new { def to_path = (puts(:asked) || "one") }.new
      p require(Pathname("deep/down/two")), require(named), require(named)
      [nil, 5, :one, Object.new].each { |name| require(name) rescue p $!.class, $!.message.sub(/0x\h+/, "") }
      ["one\0", "one".encode("UTF-16LE"), "one".b, "\xff".b].each { |name| (p require(name)) rescue p $!.class }
    RUBY
  end

  def test_an_error_says_the_same
    run = assert_names_as_plain(%w[nothing nothing/at/all nothing.rb nothing.so one/x missing raises wrong both both/x stem folder.rb folder])
    assert_operator run.figures["nowhere"], :>=, 4
  end

  def test_without_rubygems
    run = assert_names_as_plain(%w[one nothing deep/down/two json stringio stringio set missing], flags: ["--disable-gems"])
    assert_operator run.figures["found"], :>=, 3
  end

  def test_what_ends_a_file
    assert_as_plain("p catch(:out) { require 'thrown' }\np require('thrown') rescue p $!.class\nrequire 'leaves'", load_path: folders("a"))
  end

  def test_a_ring
    assert_names_as_plain(%w[round again])
  end

  def test_ruby_before_native_and_the_other_way_round
    assert_names_as_plain(%w[etc etc.so etc.rb etc], load_path: folders("native", "b"))
    assert_names_as_plain(%w[etc etc.rb etc.so etc], load_path: folders("b", "native"))
    assert_names_as_plain(%w[etc.so etc etc.rb etc], load_path: folders("b", "native"))
    assert_names_as_plain(%w[etc.so etc etc], load_path: folders("native"))
  end

  def test_features_that_are_built_in_or_native
    names = %w[thread thread.rb rational rational.so complex enumerator enumerator.so fiber monitor etc etc etc.so stringio stringio.so stringio
               socket socket socket.so date date_core io/console io/wait prism prism/prism zlib zlib digest/md5 digest/md5 ripper rbconfig set]
    run = assert_names_as_plain(names)
    assert_operator run.figures["loaded"], :>=, 8
  end

  def test_provided_by_hand
    assert_names_as_plain(%w[made made.rb up up.rb whole/name one], before: '$LOADED_FEATURES << "made.rb" << "up" << "/else/whole/name.rb"')
    assert_names_as_plain(%w[one one.rb], before: "require 'one'; $LOADED_FEATURES.delete_if { |path| path.end_with?('/one.rb') }")
  end

  def test_links
    run = assert_names_as_plain(%w[linked sub/inner otherwise/else alias else linked], load_path: folders("link/lib", "real/lib", "real/other"))
    assert_operator run.figures["found"], :>=, 3
    assert_names_as_plain(%w[here nowhere], load_path: folders("dangling", "a"))
    assert_names_as_plain(%w[b loop/b loop/loop/b], load_path: folders("only"))
  end

  def test_folders_that_are_not_there_or_written_oddly
    assert_names_as_plain(%w[one late nothing], load_path: [*folders("absent", "absent/deeper"), "#{directory}/a/", "#{directory}//b", "#{directory}/a/../b"])
    assert_names_as_plain(%w[wide one], load_path: folders("\u00fc", "a"), env: { "LC_ALL" => "C.UTF-8" })
    assert_names_as_plain(%w[wide one], load_path: folders("\u00fc", "a"), env: { "LC_ALL" => "C" })
  end

  # Without RubyGems, as that is loaded quicker.
  BARE = %w[--disable-gems -rrbconfig].freeze

  CHANGES = {
    "unshift" => "$LOAD_PATH.unshift(b)", "append" => "$LOAD_PATH << b", "delete" => "$LOAD_PATH.delete(a)",
    "replace" => "$LOAD_PATH.replace([b, *$LOAD_PATH])", "clear" => "kept = $LOAD_PATH.dup; $LOAD_PATH.clear; try('one'); $LOAD_PATH.concat([b, *kept])",
    "assign" => "$LOAD_PATH[$LOAD_PATH.index(a)] = b", "reverse" => "$LOAD_PATH << b; $LOAD_PATH.reverse!", "twice" => "$LOAD_PATH.unshift(b, a, b)",
    "relative" => "Dir.chdir(File.dirname(b)); $LOAD_PATH.unshift('b')", "relative at the end" => "Dir.chdir(File.dirname(b)); $LOAD_PATH.push('b')",
    "moved on" => "Dir.chdir(a); $LOAD_PATH.unshift('.'); try('one'); Dir.chdir(b); try('both'); try('late')",
    "path objects" => "require 'pathname'; $LOAD_PATH.unshift(Pathname(b))", "home" => "ENV['HOME'] = b; $LOAD_PATH.unshift('~')",
    "changed in place" => "try('nothing'); $LOAD_PATH[0].replace(b) rescue p $!.class",
    "changed before" => "mine = +a; $LOAD_PATH.unshift(mine); mine.replace(b); try('late')"
  }.freeze

  CHANGES.each do |name, change|
    define_method("test_load_path_changed_half_way_by_#{name.tr(" ", "_")}") do
      assert_as_plain(<<~RUBY, load_path: folders("a"), words: folders("a", "b"), flags: BARE)
        #{TRY}
        a, b = ARGV
        %w[one nothing late].each { |name| try(name) }
        #{change}
        %w[one both late deep/three deep/down/two etc nothing].each { |name| try(name) }
      RUBY
    end
  end

  def test_autoload
    assert_as_plain(<<~RUBY, load_path: folders("a"))
      autoload :Lazy, "Lazy"
      autoload :Nothing, "nothing/here"
      p autoload?(:Lazy), defined?(Lazy), defined?(Nothing)
      puts Lazy::HERE
      p Object.const_get(:Nothing) rescue p $!.class, $!.message, ($!.path if $!.respond_to?(:path))
      p autoload?(:Lazy)
      p 4.times.map { Thread.new { Lazy::HERE.size } }.map(&:value).uniq.size
    RUBY
  end

  def test_require_relative_load_and_resolve
    assert_as_plain(<<~RUBY, load_path: folders("a", "b"))
      p require("relative"), require("deep/down/two"), load("one.rb"), load("deep/three.rb")
      load "nothing.rb" rescue p $!.class
      p $LOAD_PATH.resolve_feature_path("late"), $LOAD_PATH.resolve_feature_path("nothing"), $LOAD_PATH.resolve_feature_path("etc")
      p Kernel.require("both"), Object.new.send(:require, "both"), method(:require).owner, method(:require).arity
      p Kernel.private_method_defined?(:require), Kernel.respond_to?(:require), Kernel.method_defined?(:require)
    RUBY
  end

  # By its name in the load path, by a path, from the working directory, in a module; and what it raises.
  def test_load
    run = assert_as_plain(<<~'RUBY', load_path: folders("a", "b", "link/lib"), words: [directory])
      File.write("own.rb", "puts __FILE__.delete_prefix(Dir.pwd), __dir__.delete_prefix(Dir.pwd), self.inspect\n")
      File.write("one.rb", "puts :ours\n")
      names = ["one.rb", "deep/three.rb", "late.rb", "linked.rb", "alias.rb", "folder.rb/x.rb", "own.rb", "./own.rb", "#{ARGV[0]}/a/one.rb", "#{ARGV[0]}/a/../b/one.rb", "#{ARGV[0]}/link/lib/linked.rb"]
      names.each { |name| p load(name), load(name, true), load(name, Module.new) }
      ["one", "nothing.rb", "", ".", "a", "#{ARGV[0]}/a", "raises.rb", "wrong.rb", "missing.rb", "one.rb\0", nil, 5, "\xff.rb"].each do |name|
        load(name)
      rescue Exception => e
        p e.class, e.message, (e.path if e.respond_to?(:path)), e.backtrace.map { |line| line.sub(/\d+/, "") }
      end
      load rescue p $!.class, $!.message
      load("one.rb", true, 1) rescue p $!.class, $!.message
      require "pathname"
      p load(Pathname("late.rb")), Kernel.load("late.rb"), send(:load, "late.rb"), method(:load).owner, method(:load).arity, Kernel.method(:load).arity
      p Kernel.private_method_defined?(:load), Kernel.respond_to?(:load), Kernel.method_defined?(:load)
      $LOAD_PATH.unshift(Dir.pwd)
      p load("one.rb")
      File.delete("one.rb")
      p load("one.rb")
    RUBY
    assert_operator run.figures["found"], :>=, 8
  end

  # A file that is loaded by way of a link: what it requires stands beside its real path.
  def test_load_by_way_of_links
    File.write("#{directory}/real/lib/beside.rb", "p __FILE__, __dir__, require_relative('sub/inner'), require_relative('otherwise/else')\n")
    assert_as_plain('2.times { |i| load("#{ARGV[0]}/#{i.zero? ? "link" : "real"}/lib/beside.rb", i.zero?) }', words: [directory])
  end

  def test_resolve_feature_path
    run = assert_as_plain(<<~'RUBY', load_path: [*folders("native", "a", "b", "link/lib"), "#{directory}//b/../b/deep/"], words: [directory])
      names = %w[one one.rb late both both.rb etc etc.so etc.rb deep/three three nothing nothing.rb sub/inner otherwise/else alias json json/ext stringio set rbconfig prism
                 name.with.dot stem folder folder.rb ./one ../a/one .hidden] + ["", "#{ARGV[0]}/a/one", "#{ARGV[0]}/a/one.rb", "spaced name"]
      tell = -> { names.each { |name| p [name, (found = $LOAD_PATH.resolve_feature_path(name)), found&.last&.encoding, found&.last&.frozen?] } }
      tell.call
      require "one"
      require "etc"
      $LOAD_PATH.unshift("#{ARGV[0]}/b")
      tell.call
      require "pathname"
      p $LOAD_PATH.resolve_feature_path(Pathname("late")), $LOAD_PATH.method(:resolve_feature_path).arity, $LOAD_PATH.clone.resolve_feature_path("late"), $LOAD_PATH.dup.respond_to?(:resolve_feature_path)
      [nil, 5, "one\0", "one".encode("UTF-16LE")].each { |name| $LOAD_PATH.resolve_feature_path(name) rescue p $!.class, $!.message, $!.backtrace.size }
      p Thread.new { $LOAD_PATH.resolve_feature_path("both") }.value
    RUBY
    assert_operator run.figures["found"], :>=, 12
  end

  # As the kernel is asked: real paths cost no link, and a name no try in a folder that does not have it.
  def test_what_is_asked_of_the_kernel
    skip "strace is not installed" unless system("strace", "-V", out: File::NULL, err: File::NULL)
    skip "strace may not trace here" unless system("strace", "true", out: File::NULL, err: File::NULL)

    script = "load('#{directory}/a/one.rb'); load('late.rb'); load('deep/three.rb', true); " \
             "p $LOAD_PATH.resolve_feature_path('only/me'), $LOAD_PATH.resolve_feature_path('late')"
    command = [RbConfig.ruby, "--disable-gems", "-rrbconfig", *folders("only", "a", "b").map { |folder| "-I#{folder}" }, "-I#{ROOT}/lib"]
    plain, ours = [[], ["-rculet/require"]].map do |more|
      _, err, = run_program("strace", "-f", "-e", "trace=readlink,readlinkat,open,openat", *command, *more, "-e", script,
                            env: NEUTRAL.merge("CULET_REQUIRE_CACHE" => cache, "CULET_REQUIRE" => nil))
      # The file itself is Ruby's to open.
      err.lines.grep(%r{"#{directory}[/"]}).grep(/readlink|= -1 ENOENT/).grep(/one\.rb|late|three/)
    end
    refute_empty plain
    assert_empty ours
  end

  def test_threads_that_want_the_same_file
    assert_as_plain("p 8.times.map { Thread.new { require 'slow' } }.map(&:value).sort_by(&:to_s)", load_path: folders("a"))
  end

  def test_in_a_forked_child
    assert_as_plain("require 'one'\nSTDOUT.flush\nProcess.wait(fork { p require('both'), require('one'); STDOUT.flush; exit!(3) })\n" \
                    "p $?.exitstatus, require('late')",
                    load_path: folders("a", "b"))
  end

  # What a Ractor may require is the Ruby's to say.
  def test_in_a_ractor
    assert_as_plain(<<~RUBY, load_path: folders("a", "b"))
      $VERBOSE = nil
      Warning[:experimental] = false
      ractor = Ractor.new { begin; [require("one"), require("one")]; rescue Exception => e; e.class; end }
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
      p require("one"), require("both")
    RUBY
  end

  # Whichever comes first; and where Ruby's own function is then put in the place of RubyGems' as Bundler does.
  def test_a_prepended_require_does_not_run_in_circles
    tracer = "#{directory}/a/tracer.rb"
    copied = "original = Kernel.instance_method(:gem_original_require)\n$VERBOSE = nil\nKernel.define_method(:require, original)"
    [[["-r#{tracer}"], ""], [[], "load '#{tracer}'"]].product(["", copied]).each do |(flags, before), after|
      assert_as_plain("#{before}\n#{after}\np require('one'), require('one'), require('json'), require('both')", load_path: folders("a", "b"), flags: flags)
    end
  end

  # As Bundler, Ruby's warnings of bundled gems, bootsnap and Zeitwerk do.
  def test_chains_of_aliases
    assert_as_plain(<<~'RUBY', load_path: folders("a", "b"))
      $VERBOSE = nil
      [Kernel.singleton_class, Kernel].each do |place|
        place.send(:alias_method, :no_warning_require, :require)
        place.send(:define_method, :require) { |name| puts("through #{place.singleton_class?}"); place.send(:no_warning_require, name) }
      end
      module Kernel
        alias_method :zeitwerk_original_require, :require
        def require(path) = zeitwerk_original_require(path).tap { |result| puts "then #{result}" }
      end
      p require("one"), Kernel.require("both"), require("nothing") rescue p $!.message, $!.path
    RUBY
  end

  def test_late_and_twice
    run = assert_as_plain(<<~RUBY, load_path: folders("a", "b"))
      if $LOADED_FEATURES.any? { |path| path.end_with?("/culet/require.rb") }
        load $LOADED_FEATURES.find { |path| path.end_with?("/culet/require.rb") }.then { |path| $VERBOSE = nil; path }
      end
      p require("one"), require("late"), require("one")
    RUBY
    assert_operator run.figures["found"], :>=, 2
  end
end
