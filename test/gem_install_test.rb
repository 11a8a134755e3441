# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "culet/cli"
require "culet/system/executables"
require "culet/version"
require "digest"
require "json"

# The gem as users get it: built, then installed into an empty GEM_HOME or by
# Bundler, with and without what its native part needs.
class GemInstallTest < Minitest::Test
  # RubyGems as a library: the command is named gem, gem3.1, gem.cmd, ... and may not be on a bare PATH.
  GEM = [RbConfig.ruby, "-rrubygems", "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV.dup)", "--"].freeze

  # Nothing of Bundler's or this checkout's settings may reach the installed gem.
  CLEAN = NEUTRAL.merge(%w[RUBYLIB BUNDLE_GEMFILE BUNDLE_PATH BUNDLE_BIN_PATH BUNDLE_APP_CONFIG BUNDLER_VERSION
                           BUNDLER_SETUP GEM_HOME GEM_PATH CC CFLAGS MAKE MAKEFLAGS].to_h { |name| [name, nil] }).freeze

  # Of the headers that the gem has, and of what compiles them.
  HEADERS = begin
    names = Gem::Specification.load("#{ROOT}/culet.gemspec").files.grep(/\.h\z/).sort
    texts = names.flat_map { |name| [name, File.binread("#{ROOT}/#{name}")] }
    Digest::SHA256.hexdigest([RUBY_DESCRIPTION, RbConfig::CONFIG["CC"], IO.popen([RbConfig::CONFIG["CC"].split.first, "--version"], &:read), *texts].join("\0"))
  end

  # Object files that stay from one run to the next.
  OBJECTS = File.join(ROOT, "tmp", "objects", HEADERS[0, 16]).tap do |objects|
    FileUtils.rm_rf(Dir.glob("#{File.dirname(objects)}/*") - [objects])
    FileUtils.mkdir_p(objects)
  end

  # Where it is not about what the compiler makes of the sources: without optimisation, and each source once.
  QUICK = begin
    folder = TestHelper.lasting_folder
    name = RbConfig::CONFIG["CC"].split.first
    compiler = Culet::Executables.find(name)
    FileUtils.mkdir_p("#{folder}/bin")
    FileUtils.ln_s(File.expand_path("compile_once", __dir__), "#{folder}/bin/#{File.basename(name)}")
    { "CFLAGS" => "-O0", "PATH" => "#{folder}/bin:#{ENV.fetch("PATH")}", "CULET_TEST_COMPILER" => compiler,
      "CULET_TEST_OBJECTS" => OBJECTS }.freeze
  end

  # For what compiles, on a busy machine.
  BUILD_PATIENCE_SECONDS = 900

  def setup
    @directory = new_folder
    FileUtils.cp(built_gem("culet"), @directory)
  end

  def test_installed_into_an_empty_gem_home_it_works
    look_at_the_installed_gem
    assert_equal %w[boot/syscall_counter/culet-syscall-counter.so culet.so culet_boot.so libculet.so reader/culet-scope replay/culet-replay
                    replay/culet-trace.so sampler/culet-sampler.so], Dir.glob("**/{*.so,culet-*}", base: "#{extension_folder}/culet").uniq.sort

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
    assert_equal %w[culet.rb culet.so errors.rb native.rb rails_hook.rb version.rb], loaded.grep(%r{/}).map { |path| File.basename(path) }.sort
    features, = installed(RbConfig.ruby, "-rculet", "-e", "puts $LOADED_FEATURES.grep(/terminal|vega|rake/)")
    assert_empty features
  end

  # What a server's bundle has. The table is of the command line; the remedy is followed, and works.
  def test_the_gem_alone_serves_a_program_and_names_what_a_table_needs
    install(path: bare_path("make"))
    assert_equal ["culet-#{Culet::VERSION}"], Dir.children(File.join(home, "gems"))
    out, err, status = installed("culet", "doctor", "--json")
    assert_predicate status, :success?, err
    assert_equal "glibc", JSON.parse(out).dig("allocator", "name")
    out, err, status = installed("culet", "autopsy", "--kernel")
    assert_equal [1, "", "culet: a table needs the gem terminal-table, which comes with culet-cli; run `gem install culet-cli`, or use --json\n"],
                 [status.exitstatus, out, err]
    out, err, status = installed("culet", "mcp")
    assert_equal [1, "", "culet: `culet mcp` needs the gem mcp, which comes with culet-cli; run `gem install culet-cli`\n"], [status.exitstatus, out, err]
    install_command_line
    assert_path_exists File.join(gem_folder, "skills/culet/SKILL.md")
    out, err, status = installed("sh", "-c", %(echo '{"jsonrpc":"2.0","id":7,"method":"ping"}' | #{home}/bin/culet mcp))
    assert_equal [%({"jsonrpc":"2.0","id":7,"result":{}}\n), "", 0], [out, err, status.exitstatus]
    _, err, status = installed("culet", "autopsy", "--kernel")
    assert_predicate status, :success?, err
    # Bundler requires a file of the name of each gem, or the one that the name with a slash leads to.
    loaded, = installed(RbConfig.ruby, "-e", "require 'culet-cli'; puts $LOADED_FEATURES.grep(/culet/).map { |path| File.basename(path) }")
    assert_equal "culet-cli.rb\n", loaded
  end

  # Loading culet, then Bundler: what the gem depends on at run time must not have several versions, and rake always has.
  def test_loaded_before_bundler_it_brings_no_warning
    look_at_the_installed_gem
    specification = Gem::Specification.load(File.join(home, "specifications/culet-#{Culet::VERSION}.gemspec"))
    assert_empty specification.runtime_dependencies
    app = gemfile("")
    out, err, status = run_program(RbConfig.ruby, "-rculet/auto", "-e", "require 'bundler/setup'; Gem::Specification.reset; p Culet.native?",
                                   env: environment.merge(bundle(app)), chdir: app)
    assert_equal ["true\n", "", true], [out, err, status.success?]
  end

  # As reports and --help advise it: with and without Bundler, whether or not the bundle has culet.
  { "without_a_gemfile" => nil, "with_a_gemfile_without_culet" => "", "with_a_gemfile_with_culet" => "gem \"culet\"\n" }.each do |name, gemfile|
    define_method(:"test_the_advised_options_load_each_part_#{name}") do
      look_at_the_installed_gem
      app = gemfile && gemfile(gemfile)
      words = [*(%w[bundle exec] if app), "ruby", "-e", "print %w[culet.so culet_boot.so].select { |file| Culet::Native.loaded?(file) }.join(' ')"]
      extensions = Hash.new("culet.so").merge("require" => "culet_boot.so", "unused" => "culet.so culet_boot.so")
      installed_parts.each do |part, path|
        # Without a setting, culet/limit says where the kernel sets no limit.
        variables = environment.merge(bundle(app), "RUBYOPT" => "-r#{path}", "CULET_LIMIT" => "1G")
        out, err, status = run_program(*words, env: variables, chdir: app || @directory)
        assert_equal [extensions[part], "", true], [out, err, status.success?], part
      end
    end

    define_method(:"test_programs_are_recorded_#{name}") do
      skip_unless_all if gemfile == ""

      look_at_the_installed_gem
      app = gemfile && gemfile(gemfile)
      started = [*(%w[bundle exec] if app), "ruby", "-e", "require 'set'; require 'delegate'; $kept = Array.new(50) { |i| 'text' * i }"]
      variables = environment.merge(bundle(app))
      { %w[requires --json] => %w[features processes], %w[requires --unused --json] => ["gems"], %w[strings --json] => ["strings"], %w[profile --json] => ["sites"] }.each do |verb, keys|
        out, err = assert_success(File.join(home, "bin/culet"), *verb, "--", *started, env: variables, chdir: app || @directory)
        assert_empty err
        document = JSON.parse(out)
        keys.each { |key| refute_nil document[key], "#{verb.join(" ")}: #{key}" }
        refute_match(/not recorded/, document["problems"].to_a.join, verb.join(" "))
      end
      out, err, status = run_program(File.join(home, "bin/culet"), "run", "-a", "glibc:trim", "--", *started.first(started.size - 1), "print Culet.native?",
                                     env: variables, chdir: app || @directory)
      assert_equal ["true", "", true], [out, err, status.success?]
    end
  end

  # Ends once its parent, which samples it, has read some hundred files.
  SAMPLED = "reads = -> { File.read(\"/proc/\#{Process.ppid}/io\")[/^syscr: (\\d+)/, 1].to_i }; last = reads.call + 300; sleep 0.02 until reads.call > last"

  def test_every_verb_works_outside_the_checkout
    look_at_the_installed_gem
    agent, = installed("culet", "lib", "agent")
    snapshots = %w[a b].map { |name| File.join(@directory, "#{name}.snapshot") }
    trace = File.join(@directory, "t.trace")
    unused = "#{gem_folder}/lib/culet/unused.rb"
    verbs = []
    # The threads of newer Rubies alone are enough for doctor to mind the number of arenas.
    with_program(RbConfig.ruby, "-r#{agent.chomp}", "-r#{unused}", "-e", WAITING, env: environment.merge("MALLOC_ARENA_MAX" => "2")) do |pid|
      pid = pid.to_s
      [["lib"], ["env"], ["completion", "bash"], ["run", "--", "true"], ["doctor", pid], ["report", pid], ["map", pid],
       ["snapshot", pid, "--out", snapshots[0]], ["snapshot", pid, "--objects", "--out", snapshots[1]], ["diff", *snapshots], ["cow", pid],
       ["strings", pid], ["retain", pid], ["explain", pid, "--for", "1s"], ["requires", "--unused", pid], ["requires", "--", RbConfig.ruby, "-e", "require 'set'"],
       ["compare", "--runs", "1", "--allocators", "glibc,culet", "--", RbConfig.ruby, "-e", SAMPLED],
       ["profile", "--", RbConfig.ruby, "-e", "1"], ["limit", pid], ["top", pid], ["live", pid, "--for", "1s"], ["autopsy", "--kernel"],
       ["mcp"], ["trace", "-o", trace, "--", RbConfig.ruby, "-e", "1"],
       ["replay", "--runs", "1", "--allocators", "glibc,culet", trace]].each do |words|
        out, err, status = installed("culet", *words)
        assert_predicate status, :success?, "culet #{words.join(" ")}\n#{out}#{err}"
        refute_match(/not built/, out + err, words.first)
        verbs |= [words.first]
      end
    end
    assert_equal Culet::CLI::VERBS.keys.sort, verbs.sort
  end

  # One of several processes that cannot be recorded: the report is not all, and says so.
  def test_a_report_says_which_processes_it_lacks
    look_at_the_installed_gem
    other = File.join(@directory, "other.rb")
    File.write(other, "ENV['CULET_REQUIRES_ABI'] = 'another'; system(RbConfig.ruby, '-e', '1')")
    out, _, status = installed("culet", "requires", "--json", "--", RbConfig.ruby, other)
    assert_predicate status, :success?
    unrecorded = /this is not all: process \d+ ran Ruby and was not recorded: this program runs on another Ruby/
    assert(JSON.parse(out)["problems"].any? { |sentence| sentence.match?(unrecorded) })
  end

  # gem pristine is what the sentence recommends: it must do what it says.
  def test_without_a_compiler_it_installs_and_says_what_is_missing_and_the_remedy_works
    skip_unless_all

    install(path: bare_path("make"))
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

    assert_success(*GEM, "pristine", "culet", "--extensions", env: environment.merge(QUICK), patience: BUILD_PATIENCE_SECONDS)
    assert_equal %w[culet.so culet_boot.so libculet.so], compiled.map { |path| File.basename(path) }.sort
    assert_predicate installed("culet", "lib").last, :success?
  end

  # RubyGems calls make itself. Later releases do without where there is no Makefile; to others that is an error.
  def test_without_make_the_reason_is_make
    skip_unless_all

    out, err, status = run_program(*GEM, "install", "--local", "--no-document", gem_file, env: environment.merge("PATH" => bare_path(RbConfig::CONFIG["CC"].split.first)),
                                                                                         chdir: @directory)
    if status.success?
      assert_match(/^libculet\.so: there is no make on PATH; install make$/, File.read("#{gem_folder}/lib/culet/native_missing.txt"))
      _, err, = installed("culet", "lib")
      assert_match(/libculet\.so was not built: there is no make/, err)
    else
      assert_match(/^culet: there is no make on PATH; install make, then install culet again\.$/, out + err)
    end
  end

  def test_elsewhere_it_installs_and_says_what_is_missing
    install(env: on("darwin23.1.0"))
    assert_empty compiled
    assert_match(/for Linux, and this is darwin23/, record)
  end

  # As on Alpine with build-base alone.
  def test_without_the_kernels_headers_it_installs_and_names_their_package
    skip_unless_all

    compiler = File.join(@directory, "cc-without-headers")
    File.write(compiler, "#!/bin/sh\ngrep -q 'include <linux/' \"$1\" 2>/dev/null && exit 1\nexec cc \"$@\"\n")
    File.chmod(0o755, compiler)
    install(env: on("linux-musl").merge("CC" => compiler))
    assert_empty compiled
    assert_match(%r{linux/futex\.h\) are missing; install linux-headers}, record)
  end

  def test_a_source_that_does_not_compile_fails_the_installation
    skip_unless_all

    unpacked = File.join(@directory, "unpacked")
    assert_success(*GEM, "unpack", gem_file, "--target", unpacked, env: environment)
    root = Dir[File.join(unpacked, "*")].first
    File.write(File.join(root, "ext/culet/culet.c"), "this is not C\n")
    ext = File.join(root, "ext")
    assert_predicate run_program(RbConfig.ruby, "extconf.rb", env: CLEAN, chdir: ext).last, :success?
    _, err, status = run_program("make", "install", "sitearchdir=#{@directory}/built", env: CLEAN.merge(QUICK), chdir: ext, patience: BUILD_PATIENCE_SECONDS)
    refute_predicate status, :success?
    assert_match(/^culet: building the extension failed/, err)
    assert_empty Dir[File.join(@directory, "built/**/culet.so")]
  end

  def test_bundler_installs_it_with_its_native_part
    skip_unless_all

    app = bundler_app
    assert_success("bundle", "install", "--local", env: bundler_environment(app).merge(QUICK), chdir: app, patience: BUILD_PATIENCE_SECONDS)
    out, = assert_success("bundle", "exec", "culet", "run", "--", "ruby", "-rculet", "-e",
                          "puts Culet.allocator.values_at(:name, :active).inspect",
                          env: bundler_environment(app), chdir: app)
    assert_equal "[\"culet\", true]\n", out
  end

  private

  # RubyGems starts the build in processes of their own, which read RUBYOPT.
  def on(system)
    fake = File.join(@directory, "platform.rb")
    File.write(fake, "require 'rbconfig'\nRbConfig::CONFIG['host_os'] = #{system.inspect}\n")
    { "RUBYOPT" => "-r#{fake}" }
  end

  def home = @home ||= File.join(@directory, "home")

  def gem_file = File.join(@directory, "culet-#{Culet::VERSION}.gem")

  # Built once for all tests: it is the same file.
  def built_gem(name)
    (@@built_gems ||= {})[name] ||= begin
      path = File.join(TestHelper.lasting_folder, "#{name}-#{Culet::VERSION}.gem")
      assert_success(*GEM, "build", "#{name}.gemspec", "--output", path, env: CLEAN)
      path
    end
  end

  # Installed once for the tests that only look at it. It depends on none of their folders.
  def look_at_the_installed_gem
    @home = @@installed_home ||= begin
      @home = TestHelper.lasting_folder
      install(env: QUICK)
      install_command_line
      # Some releases of RubyGems copy what was built beside the Ruby files, others do not or can be told not to.
      built = Dir.glob("**/*", base: extension_folder).map { |file| File.join(gem_folder, "lib", file) }
      FileUtils.rm_f(built.select { |path| File.file?(path) })
      @home
    end
  end

  # What `culet lib` says of each part that RUBYOPT loads, asked once.
  #
  # @return [Hash{String => String}] part => path
  def installed_parts
    @@installed_parts ||= %w[agent auto blackbox limit profile require unused].to_h do |part|
      path, err, = installed("culet", "lib", part)
      assert_equal ["#{gem_folder}/lib/culet/#{part}.rb\n", ""], [path, err]
      [part, path.chomp]
    end
  end

  # culet-cli, with the gems that it depends on as bin/setup downloaded them.
  def install_command_line
    files = Dir[File.join(ROOT, ".gems/*/*/cache/*.gem")].reject { |path| File.basename(path).start_with?("minitest-") }
    refute_empty files, "run bin/setup: the gems that culet-cli depends on are not in .gems"
    FileUtils.cp([*files, built_gem("culet-cli")], @directory)
    assert_success(*GEM, "install", "--local", "--no-document", "culet-cli-#{Culet::VERSION}.gem", env: environment, chdir: @directory)
  end

  def environment = CLEAN.merge("GEM_HOME" => home, "GEM_PATH" => home)

  def install(path: nil, env: {})
    variables = environment.merge(env)
    variables["PATH"] = path if path
    assert_success(*GEM, "install", "--local", "--no-document", gem_file, env: variables, chdir: @directory, patience: BUILD_PATIENCE_SECONDS)
  end

  def compiled = Dir[File.join(home, "extensions/*/*/culet-*/culet/*.so")]

  def extension_folder = Dir[File.join(home, "extensions/*/*/culet-*")].first

  def record = File.read(Dir[File.join(home, "extensions/**/native_missing.txt")].first || flunk("nothing is recorded"))

  def installed(*command)
    command[0] = File.join(home, "bin/culet") if command.first == "culet"
    run_program(*command, env: environment, chdir: @directory)
  end

  def gem_folder = File.join(home, "gems/culet-#{Culet::VERSION}")

  # An application's folder, with a Gemfile of these lines.
  def gemfile(lines)
    app = File.join(@directory, "other-app")
    FileUtils.mkdir_p(app)
    File.write(File.join(app, "Gemfile"), "source \"https://rubygems.org\"\n#{lines}")
    app
  end

  # The variables of a bundle of what GEM_HOME has; nil: of none.
  def bundle(app) = app ? { "BUNDLE_GEMFILE" => File.join(app, "Gemfile"), "BUNDLE_SILENCE_ROOT_WARNING" => "1" } : {}

  # A PATH that has Ruby, a shell and these, so neither a compiler nor make unless they are named.
  def bare_path(*names)
    directory = File.join(@directory, "bin")
    FileUtils.mkdir_p(directory)
    ["sh", "env", *names].each { |name| File.symlink(find_program(name), File.join(directory, name)) }
    File.symlink(RbConfig.ruby, File.join(directory, "ruby"))
    directory
  end

  def find_program(name) = Culet::Executables.find(name) || flunk("#{name} is not on PATH")

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
