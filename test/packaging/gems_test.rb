# frozen_string_literal: true

require "test_helper"
require "digest"
require "json"
require "culet/version"
require_relative "../../packaging/bill_of_materials"
require_relative "../../packaging/c_parts"
require_relative "../../packaging/checksums"
require_relative "../../packaging/platform_gem"
require_relative "../../packaging/source_gem"

# The gems that are published.
class GemsTest < Minitest::Test
  GEM = [RbConfig.ruby, "-rrubygems", "-rrubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV.dup)", "--"].freeze
  CLEAN = NEUTRAL.merge(%w[RUBYLIB BUNDLE_GEMFILE BUNDLE_PATH GEM_PATH CC CFLAGS MAKEFLAGS].to_h { |name| [name, nil] }).freeze
  BUILD_PATIENCE_SECONDS = 1800
  ABI = RUBY_VERSION[/\A\d+\.\d+/]
  # Also one that is not released yet.
  ABIS = Packaging::CParts::RUBIES | [ABI]

  def setup = @directory = new_folder

  # The specification lists those that are there.
  def test_the_manual_is_written_before_a_gem_is_made
    out, = assert_success(RbConfig.ruby, "-S", "rake", "--prereqs", env: CLEAN)
    %w[build gem:source gem:native].each { |task| assert_match(/^rake #{task}\n(    .*\n)*?    man$/, out) }
  end

  # Of another checkout, whose files have other times and modes.
  def test_the_source_gem_is_the_same_bytes_twice
    copy = File.join(@directory, "copy")
    files = Packaging::SourceGem::NAMES.flat_map { |name| [*Gem::Specification.load("#{ROOT}/#{name}.gemspec").files, "#{name}.gemspec"] }
    files.uniq.each do |name|
      FileUtils.mkdir_p(File.dirname(File.join(copy, name)))
      FileUtils.cp("#{ROOT}/#{name}", File.join(copy, name))
      File.chmod(File.executable?("#{ROOT}/#{name}") ? 0o700 : 0o600, File.join(copy, name))
      File.utime(0, 0, File.join(copy, name))
    end
    Packaging::SourceGem::NAMES.each do |name|
      gems = [ROOT, copy].each_with_index.map { |root, i| source_gem(name, File.join(@directory, i.to_s), root) }
      assert_equal(*gems.map { |path| Digest::SHA256.file(path).hexdigest })
    end
  end

  def test_the_bill_of_materials_names_each_file_and_the_sums_are_right
    gem = Packaging::SourceGem.new.call(@directory)
    bill = Packaging::BillOfMaterials.new(gem).write
    document = JSON.parse(File.read(bill))
    assert_equal %w[CycloneDX 1.5], document.values_at("bomFormat", "specVersion")
    files = document["components"].select { |component| component["type"] == "file" }
    listed = Gem::Specification.load("#{ROOT}/culet.gemspec").files
    names = files.map { |file| file["name"] }
    assert_empty (listed - names) + (names - listed)
    assert_empty listed.grep(%r{\A(?:reader|replay|sampler)/(?:build|test)/|\Aboot/syscall_counter/build/|\.(?:snapshot|trace)\z})
    license = files.find { |file| file["name"] == "LICENSE.txt" }
    assert_equal Digest::SHA256.file("#{ROOT}/LICENSE.txt").hexdigest, license.dig("hashes", 0, "content")
    command_line = Packaging::BillOfMaterials.new(Packaging::SourceGem.new("culet-cli").call(@directory)).to_h
    assert_empty document["components"].map { |component| component["purl"] }.compact
    assert_includes command_line["components"].map { |component| component["purl"] }, "pkg:gem/terminal-table"
    assert_equal Digest::SHA256.file(gem).hexdigest, document.dig("metadata", "component", "hashes", 0, "content")
    list = Packaging::Checksums.write([gem, bill])
    _, err, status = run_program("sha256sum", "--check", "--strict", list, chdir: @directory)
    assert_predicate status, :success?, err
    File.write(gem, "x", mode: "a")
    refute_predicate run_program("sha256sum", "--check", "--status", list, chdir: @directory).last, :success?
  end

  def test_the_bill_of_materials_of_a_platform_gem_says_what_is_compiled
    components = Packaging::BillOfMaterials.new(platform_gem(ABIS)).to_h["components"]
    compiled = components.select { |one| one["properties"] == [{ "name" => "culet:compiled", "value" => "true" }] }
    assert_equal compiled_files(ABIS).keys.sort, compiled.map { |one| one["name"] }.sort
  end

  # Without a compiler and without make: everything is ready-made, here by what this checkout has built.
  def test_a_platform_gem_installs_without_a_compiler
    home = install(platform_gem(ABIS))
    assert_empty Dir["#{home}/extensions/**/*.so"]
    library, = assert_success(RbConfig.ruby, "-S", "#{home}/bin/culet", "lib", env: environment(home))
    assert_equal "#{home}/gems/culet-#{Culet::VERSION}/lib/culet/libculet.so", without_platform(library.chomp)
    script = "p Culet.native?, Culet.allocator[:active], Culet.stats[:used_bytes] > 0, $LOADED_FEATURES.grep(%r{/#{ABI}/culet.so}).size"
    out, err, = run_program(RbConfig.ruby, "-rculet/auto", "-e", script, env: environment(home).merge("LD_PRELOAD" => library.chomp))
    assert_equal ["true\ntrue\ntrue\n1\n", ""], [out, err]
    out, err, = run_program(RbConfig.ruby, "-S", "#{home}/bin/culet", "run", "--allocator", "glibc:trim", "--", RbConfig.ruby,
                            "--disable-gems", "-e", "p Culet.trim_stats[:active]", env: environment(home))
    assert_equal ["true\n", ""], [out, err]
  end

  # A Ruby that the gem has no extension for: the extension alone is compiled.
  def test_a_platform_gem_without_this_ruby_compiles_the_extension
    skip_unless_all

    home = install(platform_gem(["3.0"]), path: ENV.fetch("PATH"))
    out, err, = run_program(RbConfig.ruby, "-rculet", "-e", "p Culet.native?", env: environment(home))
    assert_equal ["true\n", ""], [out, err]
    assert_equal ["culet.so", "culet_boot.so"], Dir["#{home}/extensions/*/*/culet-*/culet/**/*"].map { |path| File.basename(path) }.sort
  end

  # A Ruby that the gem has no extension for, and no compiler: the rest is there, and the reason is given.
  def test_a_platform_gem_without_this_ruby_says_what_is_missing
    home = install(platform_gem(["3.0"]))
    out, = run_program(RbConfig.ruby, "-rculet", "-e", "p Culet.native?; Culet.stats rescue puts $!.message", env: environment(home))
    assert_match(/\Afalse\nculet\.so was not built: there is no (make|C compiler)/, out)
    library, = run_program(RbConfig.ruby, "-S", "#{home}/bin/culet", "lib", env: environment(home))
    assert_path_exists library.chomp
  end

  def test_a_file_that_needs_a_newer_c_library_is_refused
    parts = parts(["3.0"])
    staged = File.join(@directory, "build/x86_64-linux-gnu/stage/lib/culet/libculet.so")
    FileUtils.mkdir_p(File.dirname(staged))
    source = File.join(@directory, "new.c")
    File.write(source, "extern int future(void);\n__asm__(\".symver future,future@GLIBC_2.99\");\nint main(void) { return future(); }\n")
    assert_predicate run_program("cc", "-fPIC", "-c", source, "-o", "#{staged}.o").last, :success?
    fake = File.join(@directory, "fake.c")
    File.write(fake, "int future(void) { return 0; }\n")
    File.write("#{fake}.map", "GLIBC_2.99 { global: future; };\n")
    assert_predicate run_program("cc", "-shared", "-fPIC", fake, "-Wl,--version-script=#{fake}.map", "-o", "#{staged}.fake.so").last, :success?
    assert_predicate run_program("cc", "-shared", "#{staged}.o", "#{staged}.fake.so", "-o", staged).last, :success?
    error = assert_raises(RuntimeError) { parts.check }
    assert_match(/libculet\.so needs glibc 2\.99, and culet supports 2\.31/, error.message)
  end

  # The whole build, by cross compilers and the headers of Debian's Rubies, for both processors and both C libraries.
  Packaging::Toolchain::PLATFORMS.each_key do |platform|
    define_method(:"test_the_gem_of_#{platform}_is_the_same_bytes_twice") do
      skip_unless_all

      gems = %w[a b].map do |name|
        platform_gem_of(Packaging::Toolchain.new(platform), "#{platform}-#{name}", File.join(@directory, name))
      end
      assert_equal(*gems.map { |path| Digest::SHA256.file(path).hexdigest })
      next assert_runs_on_musl(gems.first, platform) if platform.end_with?("-musl")
      next unless platform.start_with?(RbConfig::CONFIG["host_cpu"])
      # Debian 12's is older than the one that knows such platforms.
      next unless Gem::Package.new(gems.first).spec.required_rubygems_version.satisfied_by?(Gem.rubygems_version)

      home = install(gems.first)
      out, err, = run_program(RbConfig.ruby, "-rculet", "-e", "p Culet.native?", env: environment(home))
      assert_equal ["true\n", ""], [out, err]
    rescue Packaging::DebianArchive::Missing => e
      skip e.message
    end
  end

  # Of an image with musl, copied to a folder. Here its headers are this machine's; Rubies for glibc are left out.
  def test_the_extension_for_musl_is_compiled_where_a_rubys_files_are_given
    skip_unless_all

    platform = "#{RbConfig::CONFIG["host_cpu"]}-linux-musl"
    toolchain = Packaging::Toolchain.new(platform, installed: [RbConfig.ruby, folder_of_a_musl_ruby(platform)])
    assert_equal [RUBY_VERSION], toolchain.prepare
    gem = platform_gem_of(toolchain, "musl-extension", @directory)
    names = Gem::Package.new(gem).contents
    assert_empty %w[culet.so culet_boot.so].map { |file| "lib/culet/#{ABI}/#{file}" } - names
    # What the other Rubies compile.
    assert_equal [["boot/ext/extconf.rb", "ext/culet/extconf.rb"], []], [names.grep(%r{/ext/extconf|culet/extconf}), names.grep(%r{\A(?:allocator|reader|replay)/.*\.c\z})]
  rescue Packaging::DebianArchive::Missing => e
    skip e.message
  end

  private

  # @param name [String] of the folder for the build, which is removed
  # @return [String] the gem's path in the other folder
  def platform_gem_of(toolchain, name, folder)
    Packaging::PlatformGem.new(toolchain, build: "tmp/platform-test-#{name}").call(folder)
  ensure
    FileUtils.rm_rf(File.join(ROOT, "tmp", "platform-test-#{name}"))
  end

  def folder_of_a_musl_ruby(platform)
    folder = File.join(@directory, "ruby")
    library = File.join(folder, "lib/ruby/#{ABI}.0")
    FileUtils.mkdir_p(File.join(library, platform))
    FileUtils.cp(File.join(RbConfig::CONFIG["rubylibdir"], "mkmf.rb"), library)
    original = File.join(RbConfig::CONFIG["rubyarchdir"], "rbconfig.rb")
    version = File.readlines(original).grep(/"(?:MAJOR|MINOR|TEENY)"/).map { |line| "# #{line}" }
    File.write(File.join(library, platform, "rbconfig.rb"), [*version, "load #{original.dump}\n"].join)
    folder
  end

  # A program on the gem's allocator, and the reader, by musl's loader; of another processor under its emulator.
  def assert_runs_on_musl(gem, platform)
    processor = platform[/\A\w+?(?=-)/]
    emulator = processor == RbConfig::CONFIG["host_cpu"] ? [] : ["qemu-#{processor}"]
    skip "#{emulator.first} is not installed" unless emulator.all? { |name| Culet::Executables.find(name) }

    tree = File.join(@directory, "tree")
    Gem::Package.new(gem).extract_files(tree)
    source = File.join(@directory, "active.c")
    File.write(source, "#include <dlfcn.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n" \
                       "int (*active)(void) = dlsym(RTLD_DEFAULT, \"culet_active\");\nchar *block = realloc(malloc(100), 200000);\n" \
                       "printf(\"%d %d\", active && active(), block != NULL);\nfree(block);\nreturn 0; }\n")
    program = File.join(@directory, "active")
    assert_success(*Packaging::Toolchain.new(platform).compiler.split, source, "-o", program)
    loader = [*emulator, File.join(Packaging::Toolchain.cache, platform, "sysroot/lib/ld-musl-#{processor}.so.1")]
    out, err, = run_program(*loader, "--preload", File.join(tree, "lib/culet/libculet.so"), program, env: CLEAN)
    assert_equal ["1 1", ""], [out, err]
    _, err, = run_program(*loader, File.join(tree, "lib/culet/reader/culet-scope"), env: CLEAN)
    assert_match(/culet-scope/, err)
  end

  # In a process of its own, which loads the gemspec of that checkout.
  def source_gem(name, folder, root)
    script = "puts Packaging::SourceGem.new(ARGV[0]).call(ARGV[1], root: ARGV[2])"
    out, = assert_success(RbConfig.ruby, "-r#{ROOT}/packaging/source_gem", "-e", script, name, folder, root, env: CLEAN)
    out.chomp
  end

  def parts(abis)
    Packaging::CParts.new("x86_64-linux-gnu", compiler: "cc", versions: abis.map { |abi| "#{abi}.0" }, build: File.join(@directory, "build"))
  end

  # As packaging/Rakefile makes it, of the files of this checkout.
  def platform_gem(abis)
    specification = Gem::Specification.load("#{ROOT}/culet.gemspec").dup
    parts(abis).complete(specification)
    # This RubyGems may be older than the one that knows such platforms.
    specification.platform = Gem::Platform.local
    specification.required_rubygems_version = ">= 0"
    compiled = compiled_files(abis)
    specification.files = (specification.files + compiled.keys).uniq.sort
    tree = File.join(@directory, "tree")
    specification.files.each do |name|
      FileUtils.mkdir_p(File.dirname(File.join(tree, name)))
      name.end_with?("ready_made.txt") || FileUtils.cp(compiled.fetch(name, "#{ROOT}/#{name}"), File.join(tree, name))
    end
    File.write(File.join(tree, "lib/culet/ready_made.txt"), compiled.keys.map { |name| "#{name.delete_prefix("lib/culet/")}\n" }.join)
    Dir.chdir(tree) { Gem::DefaultUserInteraction.use_ui(Gem::SilentUI.new) { File.join(tree, Gem::Package.build(specification)) } }
  end

  def compiled_files(abis)
    built = { "libculet.so" => "allocator/build", "replay/culet-trace.so" => "replay/build", "replay/culet-replay" => "replay/build",
              "sampler/culet-sampler.so" => "sampler/build", "reader/culet-scope" => "reader/build",
              "boot/syscall_counter/culet-syscall-counter.so" => "boot/syscall_counter/build" }
    files = built.to_h { |name, folder| ["lib/culet/#{name}", "#{ROOT}/#{folder}/#{File.basename(name)}"] }
    extensions = abis.include?(ABI) ? %w[culet.so culet_boot.so] : []
    files.merge(extensions.to_h { |file| ["lib/culet/#{ABI}/#{file}", "#{ROOT}/lib/culet/#{file}"] })
  end

  # Into an empty folder, on a PATH without a compiler.
  def install(gem, path: bare_path)
    home = File.join(@directory, "home")
    folder = File.join(@directory, "gems")
    FileUtils.mkdir_p(folder)
    FileUtils.cp(gem, folder)
    assert_success(*GEM, "install", "--local", "--no-document", File.basename(gem),
                   env: environment(home).merge("PATH" => path, "CFLAGS" => "-O0"), chdir: folder, patience: BUILD_PATIENCE_SECONDS)
    home
  end

  def environment(home) = CLEAN.merge("GEM_HOME" => home, "GEM_PATH" => home, "PATH" => bare_path)

  def bare_path
    @bare_path ||= File.join(@directory, "bin").tap do |folder|
      Dir.mkdir(folder)
      # Debian's RubyGems starts rake by the name that its package has.
      ["sh", "env", "rake", "rake#{ABI}"].select { |name| File.exist?("/usr/bin/#{name}") }
                                         .each { |name| File.symlink("/usr/bin/#{name}", File.join(folder, name)) }
      File.symlink(RbConfig.ruby, File.join(folder, "ruby"))
    end
  end

  def without_platform(path) = path.sub(%r{(culet-#{Regexp.escape(Culet::VERSION)})-[^/]+}, "\\1")
end
