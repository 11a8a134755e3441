# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/version"
require "json"

# The gem as users get it: built, then installed into an empty GEM_HOME or by
# Bundler, with and without what its native part needs.
class GemInstallTest < Minitest::Test
  # RubyGems as a library: the command is named gem, gem3.1, gem.cmd, ... and may not be on a bare PATH.
  GEM = [RbConfig.ruby, "-rrubygems", "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV.dup)", "--"].freeze

  # Nothing of Bundler's or this checkout's settings may reach the installed gem.
  CLEAN = NEUTRAL.merge(%w[RUBYLIB BUNDLE_GEMFILE BUNDLE_PATH BUNDLE_BIN_PATH BUNDLE_APP_CONFIG BUNDLER_VERSION
                           BUNDLER_SETUP GEM_HOME GEM_PATH CC CFLAGS MAKE MAKEFLAGS].to_h { |name| [name, nil] }).freeze

  # Where it is not about what the compiler makes of the sources: it takes half the time.
  QUICK = { "CFLAGS" => "-O0" }.freeze

  # For what compiles, on a busy machine.
  BUILD_PATIENCE_SECONDS = 900

  def setup
    @directory = Dir.mktmpdir("culet-gem")
    FileUtils.cp(built_gem, @directory)
    FileUtils.cp(dependencies, @directory)
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  def test_installed_into_an_empty_gem_home_it_works
    look_at_the_installed_gem
    assert_equal ["culet.so", "libculet.so"], compiled.map { |path| File.basename(path) }.sort

    out, err, status = installed("culet", "lib")
    assert_predicate status, :success?, err
    assert_equal compiled.find { |path| path.end_with?("/libculet.so") }, out.chomp

    out, err, status = installed("culet", "run", "--", RbConfig.ruby, "-rculet", "-rjson", "-e",
                                 "puts JSON.generate([Culet.native?, Culet.allocator, Culet.stats])")
    assert_predicate status, :success?, err
    native, allocator, stats = JSON.parse(out)
    assert native
    assert_equal ["culet", true, Culet::VERSION], allocator.values_at("name", "active", "version")
    assert_operator stats["used_bytes"], :>, 0

    # Without gems, as in a program whose bundle does not have this one.
    out, err, = installed("culet", "run", "--allocator", "glibc:trim", "--", RbConfig.ruby, "--disable-gems", "-e", "p Culet.trim_stats[:active]")
    assert_equal ["true\n", ""], [out, err]

    out, err, status = installed("culet", "doctor", "--json")
    assert_predicate status, :success?, err
    assert_equal "glibc", JSON.parse(out).dig("allocator", "name")
  end

  def test_the_installed_library_loads_no_gem_but_itself
    look_at_the_installed_gem
    out, err, = installed(RbConfig.ruby, "-rculet", "-e", "puts Gem.loaded_specs.keys; puts $LOADED_FEATURES.grep(%r{/culet-#{Culet::VERSION}/})")
    assert_empty err
    loaded = out.lines(chomp: true)
    assert_includes loaded, "culet"
    assert_equal %w[culet.rb culet.so errors.rb native.rb version.rb], loaded.grep(%r{/}).map { |path| File.basename(path) }.sort
    features, = installed(RbConfig.ruby, "-rculet", "-e", "puts $LOADED_FEATURES.grep(/terminal|vega|progressbar|rake/)")
    assert_empty features
  end

  def test_without_compiler_and_make_it_installs_and_says_what_is_missing
    bare = bare_path
    install(path: bare)
    assert_empty compiled
    record = Dir[File.join(home, "extensions/**/native_missing.txt")]
    assert_equal 1, record.size
    assert_match(/^libculet\.so: there is no C compiler .*install gcc/, File.read(record.first))

    out, err, status = installed("culet", "lib")
    assert_equal [1, ""], [status.exitstatus, out]
    assert_match(/\Aculet: libculet\.so was not built: there is no C compiler .*; then run `gem pristine culet --extensions`\n\z/, err)

    out, err, status = installed("culet", "run", "--", "echo", "started")
    assert_equal [1, ""], [status.exitstatus, out]
    assert_match(/no C compiler/, err)

    out, err, = installed(RbConfig.ruby, "-rculet", "-e",
                          "p Culet.native?; begin; Culet.allocator; rescue Culet::Error => e; puts e.message; end")
    assert_empty err
    assert_match(/\Afalse\nculet\.so was not built: there is no C compiler/, out)

    out, err, status = installed("culet", "run", "--allocator", "jemalloc", "--", "sh", "-c", 'echo "$LD_PRELOAD"')
    assert_predicate status, :success?, err
    assert_equal Culet::Allocators.parse("jemalloc").library, out.chomp
  end

  def test_without_make_alone_the_reason_is_make
    bare = bare_path
    compiler = RbConfig::CONFIG["CC"].split.first
    File.symlink(find_program(compiler), File.join(bare, compiler))
    install(path: bare)
    assert_match(/^libculet\.so: there is no make on PATH; install make$/, record)
  end

  # gem pristine is what the sentence recommends: it must do what it says.
  def test_the_remedy_works
    install(path: bare_path)
    assert_empty compiled
    _, err, status = run_program(*GEM, "pristine", "culet", "--extensions", env: environment.merge(QUICK), patience: BUILD_PATIENCE_SECONDS)
    assert_predicate status, :success?, err
    assert_equal 2, compiled.size
    assert_predicate installed("culet", "lib").last, :success?
  end

  { "darwin23.1.0" => /for Linux, and this is darwin23/, "linux-musl" => /needs glibc, and this Ruby uses musl/ }.each do |os, reason|
    define_method(:"test_on_#{os}_it_installs_and_says_what_is_missing") do
      # RubyGems starts rake in a process of its own, which reads RUBYOPT.
      fake = File.join(@directory, "platform.rb")
      File.write(fake, "require 'rbconfig'\nRbConfig::CONFIG['host_os'] = #{os.inspect}\n")
      install(env: { "RUBYOPT" => "-r#{fake}" })
      assert_empty compiled
      assert_match reason, record
    end
  end

  def test_a_source_that_does_not_compile_fails_the_installation
    unpacked = File.join(@directory, "unpacked")
    _, err, status = run_program(*GEM, "unpack", gem_file, "--target", unpacked, env: environment)
    assert_predicate status, :success?, err
    root = Dir[File.join(unpacked, "*")].first
    File.write(File.join(root, "ext/culet/culet.c"), "this is not C\n")
    _, err, status = run_program(RbConfig.ruby, "-S", find_program("rake"), "RUBYARCHDIR=#{@directory}/built",
                                 env: CLEAN.merge(QUICK), chdir: File.join(root, "ext"), patience: BUILD_PATIENCE_SECONDS)
    refute_predicate status, :success?
    assert_match(/^culet: building the extension failed/, err)
    assert_empty Dir[File.join(@directory, "built/**/culet.so")]
  end

  def test_bundler_installs_it_with_its_native_part
    app = bundler_app
    out, err, status = run_program("bundle", "install", "--local", env: bundler_environment(app).merge(QUICK), chdir: app, patience: BUILD_PATIENCE_SECONDS)
    assert_predicate status, :success?, out + err
    out, err, status = run_program("bundle", "exec", "culet", "run", "--", "ruby", "-rculet", "-e",
                                   "puts Culet.allocator.values_at(:name, :active).inspect",
                                   env: bundler_environment(app), chdir: app)
    assert_predicate status, :success?, err
    assert_equal "[\"culet\", true]\n", out
  end

  private

  def home = @home ||= File.join(@directory, "home")

  def gem_file = File.join(@directory, "culet-#{Culet::VERSION}.gem")

  # Built once for all tests: it is the same file.
  def built_gem
    @@built_gem ||= begin
      directory = Dir.mktmpdir("culet-built")
      Minitest.after_run { FileUtils.rm_rf(directory) }
      path = File.join(directory, "culet-#{Culet::VERSION}.gem")
      _, err, status = run_program(*GEM, "build", "culet.gemspec", "--output", path, env: CLEAN)
      assert_predicate status, :success?, err
      path
    end
  end

  # Installed once for the tests that only look at it. It depends on none of their folders.
  def look_at_the_installed_gem
    @home = @@installed_home ||= begin
      @home = Dir.mktmpdir("culet-installed")
      Minitest.after_run { FileUtils.rm_rf(@home) }
      install
      @home
    end
  end

  # What the gem depends on, as bin/setup downloaded it.
  def dependencies
    files = Dir[File.join(ROOT, ".gems/*/*/cache/*.gem")].reject { |path| File.basename(path).start_with?("minitest-") }
    refute_empty files, "run bin/setup: the gems that culet depends on are not in .gems"
    files
  end

  def environment = CLEAN.merge("GEM_HOME" => home, "GEM_PATH" => home)

  def install(path: nil, env: {})
    variables = environment.merge(env)
    variables["PATH"] = path if path
    out, err, status = run_program(*GEM, "install", "--local", "--no-document", gem_file, env: variables, chdir: @directory, patience: BUILD_PATIENCE_SECONDS)
    assert_predicate status, :success?, out + err
  end

  def compiled = Dir[File.join(home, "extensions/*/*/culet-*/culet/*.so")]

  def record = File.read(Dir[File.join(home, "extensions/**/native_missing.txt")].first || flunk("nothing is recorded"))

  def installed(*command)
    command[0] = File.join(home, "bin/culet") if command.first == "culet"
    run_program(*command, env: environment, chdir: @directory)
  end

  # A PATH that has Ruby and a shell and neither compiler nor make.
  def bare_path
    directory = File.join(@directory, "bin")
    FileUtils.mkdir_p(directory)
    %w[sh env].each { |name| File.symlink(find_program(name), File.join(directory, name)) }
    File.symlink(RbConfig.ruby, File.join(directory, "ruby"))
    directory
  end

  def find_program(name)
    ENV["PATH"].split(":").map { |directory| File.join(directory, name) }.find { |path| File.executable?(path) } ||
      flunk("#{name} is not on PATH")
  end

  def bundler_app
    app = File.join(@directory, "app")
    FileUtils.mkdir_p(File.join(app, "vendor/cache"))
    FileUtils.cp(Dir[File.join(@directory, "*.gem")], File.join(app, "vendor/cache"))
    File.write(File.join(app, "Gemfile"), "source \"https://rubygems.org\"\ngem \"culet\"\n")
    app
  end

  def bundler_environment(app)
    CLEAN.merge("BUNDLE_PATH" => File.join(app, "bundle"), "BUNDLE_GEMFILE" => File.join(app, "Gemfile"),
                "BUNDLE_SILENCE_ROOT_WARNING" => "1")
  end
end
