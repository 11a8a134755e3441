# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# Builds culet's compiled files into one directory: the native extension culet.so,
# the allocator libculet.so, below trace/ the recorder and the player of traces,
# below scope/ the reader of processes, and below calls/ the counter of calls. What this machine lacks for one of
# them is a sentence, not a failure: the gem's command line and reports are of
# use without them, and a gem that cannot be installed on a developer's Mac
# cannot be in that team's Gemfile. What should build here and does not is an
# error.
class NativeBuild
  # The compiler or make ended with an error.
  class Failed < StandardError; end

  ROOT = File.expand_path("..", __dir__)
  RECORD = "native_missing.txt"
  EXTENSION = "culet.so"
  ALLOCATOR = "libculet.so"
  TRACE = %w[trace/culet-trace.so trace/culet-replay].freeze
  SCOPE = %w[scope/culet-scope].freeze
  CALLS = %w[calls/culet-calls.so].freeze
  PARTS = [ALLOCATOR, EXTENSION, *TRACE, *SCOPE, *CALLS].freeze
  PROCESSORS = /\A(x86_64|amd64|aarch64|arm64)\z/
  NO_MAKE = "there is no make on PATH; install make"

  # @return [String, nil] the make there is
  def self.make = [ENV["MAKE"], "make", "gmake"].compact.find { |name| program(name) }

  # @param name [String] of a program, or its path
  # @return [Boolean] whether it can be run
  def self.program(name)
    return File.executable?(name) if name.include?("/")

    ENV["PATH"].to_s.split(":").any? do |directory|
      path = File.join(directory, name)
      File.executable?(path) && File.file?(path)
    end
  end

  # @param destination [String] where the files go
  # @param scratch [String] a directory of our own for object files
  # @param out [IO] for progress
  def initialize(destination:, scratch:, out: $stdout)
    @destination = File.expand_path(destination)
    @scratch = File.expand_path(scratch)
    @out = out
  end

  # Builds what can be built and records what cannot, with its reason.
  #
  # @return [Hash{String => String}] file => what it lacks; empty when all is there
  # @raise [Failed] when a compiler run fails
  def call
    FileUtils.mkdir_p([@destination, @scratch])
    lacks = { ALLOCATOR => allocator_lacks, EXTENSION => extension_lacks, **(TRACE + SCOPE + CALLS).to_h { |file| [file, allocator_lacks] } }.compact
    lacks.each { |file, reason| @out.puts("culet: #{file} is not built: #{reason}.") }
    build_allocator unless lacks.key?(ALLOCATOR)
    build_trace unless lacks.key?(TRACE.first)
    build_scope unless lacks.key?(SCOPE.first)
    build_calls unless lacks.key?(CALLS.first)
    build_extension unless lacks.key?(EXTENSION)
    record(lacks)
    lacks
  end

  # The extension alone.
  #
  # @raise [Failed]
  def extension
    FileUtils.mkdir_p([@destination, @scratch])
    reason = extension_lacks
    raise Failed, "#{EXTENSION} cannot be built: #{reason}" if reason

    build_extension
  end

  # Builds nothing, and records why.
  #
  # @param reason [String] what this machine lacks
  def refuse(reason)
    record(PARTS.to_h { |file| [file, platform_lacks || reason] })
  end

  # @return [String, nil] what is missing for libculet.so
  def allocator_lacks
    return @allocator_lacks if defined?(@allocator_lacks)

    @allocator_lacks = platform_lacks || tools_lack
  end

  # @return [String, nil] what is missing for culet.so
  def extension_lacks
    allocator_lacks || headers_lack
  end

  private

  def platform_lacks
    os = RbConfig::CONFIG["host_os"]
    return "culet's native part is for Linux, and this is #{os}" unless os.include?("linux")
    return "culet's allocator needs glibc, and this Ruby uses musl" if os.include?("musl")

    processor = RbConfig::CONFIG["host_cpu"]
    "culet's allocator is for x86-64 and aarch64, and this is #{processor}" unless processor.match?(PROCESSORS)
  end

  def tools_lack
    return "there is no C compiler (#{compiler}) on PATH; install gcc and libc6-dev" unless program(compiler)
    return NO_MAKE unless make

    "the C compiler (#{compiler}) cannot build a small program; install libc6-dev" unless compiles?
  end

  def headers_lack
    directory = RbConfig::CONFIG["rubyhdrdir"].to_s
    return if File.exist?(File.join(directory, "ruby.h"))

    "Ruby's C headers are not in #{directory}; install ruby-dev"
  end

  # Both parts use the compiler Ruby was built with, as every extension does, or the one in CC.
  def compiler = @compiler ||= (ENV["CC"] || RbConfig::CONFIG["CC"]).split.first

  def make = @make ||= self.class.make

  def program(name) = self.class.program(name)

  def compiles?
    source = File.join(@scratch, "probe.c")
    File.write(source, "#include <stdlib.h>\nint main(void) { return malloc(1) == NULL; }\n")
    _, status = Open3.capture2e(compiler, source, "-o", File.join(@scratch, "probe"))
    status.success?
  end

  def build_allocator
    build = File.join(@scratch, "allocator")
    run("libculet.so", make, "-C", File.join(ROOT, "allocator"), "BUILD=#{build}", "CC=#{compiler}", "libculet")
    install(File.join(build, ALLOCATOR))
  end

  def build_trace
    build = File.join(@scratch, "trace")
    run("the recorder of traces", make, "-C", File.join(ROOT, "trace"), "BUILD=#{build}", "CC=#{compiler}", "trace")
    install_all(TRACE, build)
  end

  def build_scope
    build = File.join(@scratch, "scope")
    run("the reader of processes", make, "-C", File.join(ROOT, "scope"), "BUILD=#{build}", "CC=#{compiler}", "scope")
    install_all(SCOPE, build)
  end

  def build_calls
    build = File.join(@scratch, "calls")
    run("the counter of calls", make, "-C", File.join(ROOT, "calls"), "BUILD=#{build}", "CC=#{compiler}", "calls")
    install_all(CALLS, build)
  end

  def install_all(files, build)
    files.each { |file| install(File.join(build, File.basename(file)), File.join(@destination, File.dirname(file))) }
  end

  def build_extension
    build = File.join(@scratch, "extension")
    FileUtils.mkdir_p(build)
    run("the extension's Makefile", RbConfig.ruby, File.join(ROOT, "ext/culet/extconf.rb"), chdir: build)
    run("the extension", make, chdir: build)
    install(File.join(build, EXTENSION))
  end

  def run(what, *command, **options)
    text, status = Open3.capture2e(CLEAN, *command.map(&:to_s), **options)
    @out.puts(text) unless status.success?
    raise Failed, "building #{what} failed, see the lines above" unless status.success?
  end

  # A make or Ruby that runs us hands its own flags on; ours are different programs.
  CLEAN = { "MAKEFLAGS" => nil, "MFLAGS" => nil, "MAKELEVEL" => nil, "DESTDIR" => nil }.freeze
  private_constant :CLEAN

  # A running process may have the old file mapped: it keeps it, because the new one is renamed over it.
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
