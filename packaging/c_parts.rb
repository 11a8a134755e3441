# frozen_string_literal: true

require "open3"
require_relative "../ext/native_build"
require_relative "source_gem"

module Packaging
  # The part of a platform gem that rake-compiler does not know: the programs and libraries in C, and the list of what
  # is ready-made.
  class CParts
    # The Rubies that culet supports.
    RUBIES = %w[3.1 3.2 3.3 3.4 4.0].freeze
    # The oldest C library that culet supports.
    GLIBC = Gem::Version.new("2.31")
    # Sources that only a build needs, and among them those that the extensions are made of.
    SOURCES = %r{\A(?:allocator|boot/(?:ext|syscall_counter)|sampler|reader|replay|ext|part\.mk)}
    EXTENSION_SOURCES = %r{\A(?:ext|boot/ext|sampler/core|reader/layouts)/|\.h\z}

    # @param platform [String] of the gem
    # @param compiler [String] with options
    # @param versions [Array<String>] of the Rubies that the gem has extensions for
    # @param build [String] rake-compiler's folder
    def initialize(platform, compiler:, versions:, build:)
      @platform = platform
      @compiler = compiler
      @abis = versions.map { |version| version[/\A\d+\.\d+/] }
      @scratch = File.join(build, platform, "c_parts")
      @stage = File.join(build, platform, "stage")
    end

    # Tells rake how the files come into the folder that rake-compiler packs.
    #
    # @return [Array<String>] the tasks, by the files' names in the gem
    def define
      Rake::FileTask.define_task(staged("ready_made.txt")) { |task| write(task.name) }
      compiled.each { |file| Rake::FileTask.define_task(staged(file)) { build } }
      # Gem::PackageTask names files as they are in the gem.
      added.map { |file| Rake::FileTask.define_task("lib/culet/#{file}" => staged(file)).name }
    end

    # Completes the specification that rake-compiler made of the source gem's.
    #
    # @param specification [Gem::Specification]
    def complete(specification)
      gaps = RUBIES - @abis
      specification.required_rubygems_version = ">= 3.3.22"
      newest = (RUBIES | @abis).max
      specification.required_ruby_version = [">= #{RUBIES.first}", *("< #{newest.succ}.dev" if gaps.empty?)]
      # For the other Rubies the extensions are compiled when the gem is installed.
      specification.extensions = gaps.empty? ? [] : ["ext/ready_made/Rakefile"]
      sources = specification.files.grep(SOURCES)
      specification.files -= gaps.empty? ? sources : sources.grep_v(EXTENSION_SOURCES)
      specification.files = (specification.files + added.map { |file| "lib/culet/#{file}" }).uniq.sort
    end

    # Makes the gem of a platform without a single extension, which rake-compiler does not: what differs from the source
    # gem are the compiled files.
    #
    # @param specification [Gem::Specification] the source gem's
    # @param folder [String] where the gem is put
    def pack(specification, folder)
      specification.platform = Gem::Platform.new(@platform)
      complete(specification)
      (specification.files - added.map { |file| "lib/culet/#{file}" }).each { |name| SourceGem.copy(name, ".", @stage) }
      FileUtils.mkdir_p(folder)
      target = File.expand_path(specification.file_name, folder)
      Dir.chdir(@stage) { Gem::Package.build(specification, false, false, target) }
    end

    # @raise [RuntimeError] when a compiled file needs a newer C library than the oldest that culet supports, or another
    def check
      ready.each { |file| musl? ? check_musl(file) : check_glibc(file) }
    end

    private

    def compiled = NativeBuild::C_FILES

    def added = [*compiled, "ready_made.txt"]

    def ready = [*compiled, *@abis.product(NativeBuild::EXTENSIONS.keys).map { |abi, file| "#{abi}/#{file}" }]

    def staged(file) = File.join(@stage, "lib/culet", file)

    def build
      return if @built

      NativeBuild.new(destination: File.join(@stage, "lib/culet"), scratch: @scratch, compiler: @compiler).c_parts
      @built = true
    end

    def write(path)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, ready.map { |file| "#{file}\n" }.join)
    end

    def musl? = @platform.end_with?("-musl")

    def check_glibc(file)
      needed = glibc_versions(file).max
      return if needed.nil? || needed <= GLIBC

      raise "#{file} needs glibc #{needed}, and culet supports #{GLIBC}; build it with Toolchain's compiler"
    end

    # musl's symbols have no versions. Its loader takes libc.so for itself.
    def check_musl(file)
      needed = readelf("--dynamic", file).scan(/\(NEEDED\).*\[(.+)\]/).flatten
      return if needed == ["libc.so"] && glibc_versions(file).empty?

      raise "#{file} needs #{needed.join(", ")}, and musl has libc.so alone; build it with Toolchain's compiler"
    end

    def glibc_versions(file)
      readelf("--version-info", file).scan(/\bGLIBC_(\d+(?:\.\d+)+)/).flatten.map { |version| Gem::Version.new(version) }
    end

    def readelf(option, file)
      out, err, status = Open3.capture3({ "LC_ALL" => "C" }, "readelf", option, "--wide", staged(file))
      raise "readelf failed for #{file}: #{err}" unless status.success?

      out
    end
  end
end
