# frozen_string_literal: true

require "etc"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# Builds culet's compiled files into one directory: the Ruby extensions culet.so and culet_boot.so, the allocator
# libculet.so, and the programs and libraries of the other parts in C, each in a folder that is named as the part's.
#
# A part that this machine lacks something for is skipped and recorded with the reason: the command line and the reports
# work without it, and a gem that does not install on a developer's Mac cannot be in the team's Gemfile. A compiler
# error is an error. A platform gem has the parts in C ready-made, and the extensions for some Rubies: for another Ruby
# the extensions alone are built.
class NativeBuild
  # The compiler or make failed.
  class Failed < StandardError; end

  ROOT = File.expand_path("..", __dir__)
  RECORD = "native_missing.txt"
  # A Ruby extension => the folder of its extconf.rb. boot/ does not need the other one.
  EXTENSIONS = { "culet.so" => "ext/culet", "culet_boot.so" => "boot/ext" }.freeze
  ALLOCATOR = "libculet.so"
  # The other parts in C: a folder of sources => what is built of it.
  FOLDERS = { "sampler" => %w[culet-sampler.so], "reader" => %w[culet-scope],
              "replay" => %w[culet-trace.so culet-replay],
              "boot/syscall_counter" => %w[culet-syscall-counter.so] }.freeze
  C_FILES = [ALLOCATOR, *FOLDERS.flat_map { |folder, files| files.map { |file| "#{folder}/#{file}" } }].freeze
  PARTS = [*C_FILES, *EXTENSIONS.keys].freeze
  # A platform gem's list of its compiled files.
  READY = File.join(ROOT, "lib/culet/ready_made.txt")
  PROCESSORS = /\A(x86_64|amd64|aarch64|arm64)\z/
  # Compilers at a time; each takes some 100 MB.
  JOBS = "-j#{Etc.nprocessors.clamp(1, 8)}".freeze
  NO_MAKE = "there is no make on PATH; install make"

  # @return [String, nil] name of the make program
  def self.make = [ENV.fetch("MAKE", nil), "make", "gmake"].compact.find { |name| program(name) }

  # @param name [String] name or path of a program
  # @return [Boolean] whether it can be run
  def self.program(name)
    return File.executable?(name) if name.include?("/")

    # `split` refuses a folder's name that is invalid in the locale's encoding.
    ENV["PATH"].to_s.b.split(":").any? do |directory|
      path = File.join(directory, name)
      File.executable?(path) && File.file?(path)
    end
  end

  # @param destination [String] where the files are installed
  # @param scratch [String] directory for object files
  # @param out [IO] receives messages and compiler output
  # @param compiler [String, nil] with options; nil: CC, or the compiler that Ruby was built with
  def initialize(destination:, scratch:, out: $stdout, compiler: nil)
    @compiler = compiler
    @debugging = true
    @destination = File.expand_path(destination)
    @scratch = File.expand_path(scratch)
    @out = out
  end

  # Builds all parts that can be built here, and records the others with the reason. That is an installation, in which
  # debugging information would take a fifth of the compiler's time for the extensions, and four fifths of their size.
  #
  # @return [Hash{String => String}] file => reason, of the parts that were not built
  # @raise [Failed] when the compiler or make fails
  def call
    @debugging = false
    FileUtils.mkdir_p([@destination, @scratch])
    lacks = PARTS.to_h { |file| [file, EXTENSIONS.key?(file) ? extension_lacks : allocator_lacks] }
    lacks = lacks.compact.reject { |file, _| ready?(file) }
    lacks.each { |file, reason| @out.puts("culet: #{file} is not built: #{reason}.") }
    c_parts unless lacks.key?(ALLOCATOR) || ready?(ALLOCATOR)
    EXTENSIONS.each_key { |file| build_extension(file) unless lacks.key?(file) || ready?(file) }
    record(lacks)
    lacks
  end

  # Builds the extensions alone.
  #
  # @raise [Failed]
  def extensions
    FileUtils.mkdir_p([@destination, @scratch])
    reason = extension_lacks
    raise Failed, "#{EXTENSIONS.keys.join(" and ")} cannot be built: #{reason}" if reason

    EXTENSIONS.each_key { |file| build_extension(file) }
  end

  # Builds the parts in C alone.
  #
  # @raise [Failed]
  def c_parts
    FileUtils.mkdir_p([@destination, @scratch])
    make_part("allocator", "libculet")
    install(File.join(@scratch, "allocator", ALLOCATOR))
    FOLDERS.each_key { |folder| build_part(folder) }
  end

  # Builds one part in C.
  #
  # @param folder [String] of FOLDERS
  # @raise [Failed]
  def build_part(folder)
    make_part(folder, File.basename(folder))
    FOLDERS.fetch(folder).each { |file| install(File.join(@scratch, folder, file), File.join(@destination, folder)) }
  end

  # Builds nothing and records why.
  def refuse(reason)
    record(PARTS.reject { |file| ready?(file) }.to_h { |file| [file, platform_lacks || reason] })
  end

  # @return [String, nil] what libculet.so needs and this machine lacks
  def allocator_lacks
    return @allocator_lacks if defined?(@allocator_lacks)

    @allocator_lacks = platform_lacks || tools_lack
  end

  # @return [String, nil] what the extensions need and this machine lacks
  def extension_lacks
    allocator_lacks || headers_lack
  end

  private

  def platform_lacks
    os = RbConfig::CONFIG["host_os"]
    return "culet's native part is for Linux, and this is #{os}" unless os.include?("linux")

    processor = RbConfig::CONFIG["host_cpu"]
    "culet's allocator is for x86-64 and aarch64, and this is #{processor}" unless processor.match?(PROCESSORS)
  end

  def tools_lack
    return "there is no C compiler (#{compiler}) on PATH; install #{compiler_packages}" unless program(compiler)
    return NO_MAKE unless make
    return "the C compiler (#{compiler}) cannot build a small program; install #{library_package}" unless compiles?

    "Linux's C headers (linux/futex.h) are missing; install #{kernel_package}" unless compiles?("linux/futex.h")
  end

  # The packages of Debian, and of Alpine where the C library is musl.
  def musl? = RbConfig::CONFIG["host_os"].include?("musl")
  def compiler_packages = musl? ? "build-base" : "gcc and libc6-dev"
  def library_package = musl? ? "musl-dev" : "libc6-dev"
  def kernel_package = musl? ? "linux-headers" : "linux-libc-dev"

  def headers_lack
    directory = RbConfig::CONFIG["rubyhdrdir"].to_s
    return if File.exist?(File.join(directory, "ruby.h"))

    "Ruby's C headers are not in #{directory}; install ruby-dev"
  end

  def compiler = @compiler ||= (ENV["CC"] || RbConfig::CONFIG["CC"]).split.first

  # Whether this is a platform gem that has the file, for this Ruby.
  def ready?(file)
    @ready ||= File.exist?(READY) ? File.readlines(READY, chomp: true) : []
    name = EXTENSIONS.key?(file) ? "#{RUBY_VERSION[/\A\d+\.\d+/]}/#{file}" : file
    @ready.include?(name)
  end

  def make = @make ||= self.class.make

  def program(name) = self.class.program(name)

  def compiles?(header = "stddef.h")
    source = File.join(@scratch, "probe.c")
    File.write(source, "#include <stdlib.h>\n#include <#{header}>\nint main(void) { return malloc(1) == NULL; }\n")
    _, status = Open3.capture2e(compiler, source, "-o", File.join(@scratch, "probe"))
    status.success?
  end

  # The parts in C have a Makefile each, which takes BUILD and CC.
  def make_part(folder, target)
    flags = "CFLAGS=-O2 -g0" unless @debugging || ENV["CFLAGS"]
    build = File.join(@scratch, folder)
    run(folder, make, JOBS, "-C", File.join(ROOT, folder), "BUILD=#{build}", "CC=#{compiler}", *flags, target)
  end

  def build_extension(file)
    folder = EXTENSIONS.fetch(file)
    build = File.join(@scratch, folder)
    FileUtils.mkdir_p(build)
    options = @debugging ? [] : ["--disable-debugging"]
    run("the extension's Makefile", RbConfig.ruby, File.join(ROOT, folder, "extconf.rb"), *options, chdir: build)
    run("the extension", make, JOBS, chdir: build)
    install(File.join(build, file))
  end

  def run(what, *command, **options)
    text, status = Open3.capture2e(CLEAN, *command.map(&:to_s), **options)
    @out.puts(text) unless status.success?
    raise Failed, "building #{what} failed, see the lines above" unless status.success?
  end

  # The flags of a make that runs this build are not for the makes that it starts.
  CLEAN = { "MAKEFLAGS" => nil, "MFLAGS" => nil, "MAKELEVEL" => nil, "DESTDIR" => nil }.freeze
  private_constant :CLEAN

  # The new file is renamed over the old one: a process that has the old one mapped keeps it.
  def install(file, directory = @destination)
    FileUtils.mkdir_p(directory)
    target = File.join(directory, File.basename(file))
    FileUtils.cp(file, "#{target}.part")
    File.chmod(0o755, "#{target}.part")
    File.rename("#{target}.part", target)
  ensure
    FileUtils.rm_f("#{target}.part")
  end

  def record(lacks)
    path = File.join(@destination, RECORD)
    return FileUtils.rm_f(path) if lacks.empty?

    File.write("#{path}.part", lacks.map { |file, reason| "#{file}: #{reason}\n" }.join)
    File.rename("#{path}.part", path)
  end
end
