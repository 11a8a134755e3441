# frozen_string_literal: true

require "open3"
require_relative "../ext/native_build"

module Packaging
  # The part of a platform gem that rake-compiler does not know: the programs and libraries in C, and the list of what
  # is ready-made.
  class CParts
    # The Rubies that culet supports.
    RUBIES = %w[3.1 3.2 3.3 3.4 4.0].freeze
    # The oldest C library that culet supports.
    GLIBC = Gem::Version.new("2.31")
    # Sources that only a build needs.
    SOURCES = /\A(?:allocator|trace|scope|syscall_counter|profile|layouts|ext|part\.mk)/

    # @param platform [String] of the gem
    # @param compiler [String] with options
    # @param versions [Array<String>] of the Rubies that the gem has an extension for
    # @param build [String] rake-compiler's folder
    def initialize(platform, compiler:, versions:, build:)
      @compiler = compiler
      @abis = versions.map { |version| version[/\A\d+\.\d+/] }
      @scratch = File.join(build, platform, "c_parts")
      @stage = File.join(build, platform, "stage")
    end

    # Tells rake how the files come into the folder that rake-compiler packs.
    def define
      Rake::FileTask.define_task(staged("ready_made.txt")) { |task| write(task.name) }
      compiled.each { |file| Rake::FileTask.define_task(staged(file)) { build } }
      # Gem::PackageTask names files as they are in the gem.
      added.each { |file| Rake::FileTask.define_task("lib/culet/#{file}" => staged(file)) }
    end

    # Completes the specification that rake-compiler made of the source gem's.
    #
    # @param specification [Gem::Specification]
    def complete(specification)
      gaps = RUBIES - @abis
      specification.required_rubygems_version = ">= 3.3.22"
      specification.required_ruby_version = [">= #{RUBIES.first}", *("< #{RUBIES.last.succ}.dev" if gaps.empty?)]
      # For the other Rubies the extension is compiled when the gem is installed.
      specification.extensions = gaps.empty? ? [] : ["ext/ready_made/Rakefile"]
      specification.files -= specification.files.grep(SOURCES) if gaps.empty?
      specification.files = (specification.files + added.map { |file| "lib/culet/#{file}" }).uniq.sort
    end

    # @raise [RuntimeError] when a compiled file needs a newer C library than the oldest that culet supports
    def check
      ready.each do |file|
        needed = versions_of(staged(file)).max
        next if needed.nil? || needed <= GLIBC

        raise "#{file} needs glibc #{needed}, and culet supports #{GLIBC}; build it with Toolchain's compiler"
      end
    end

    private

    def compiled = [NativeBuild::ALLOCATOR, *NativeBuild::TRACE, *NativeBuild::SCOPE, *NativeBuild::SYSCALL_COUNTER]

    def added = [*compiled, "ready_made.txt"]

    def ready = [*compiled, *@abis.map { |abi| "#{abi}/#{NativeBuild::EXTENSION}" }]

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

    def versions_of(file)
      out, err, status = Open3.capture3({ "LC_ALL" => "C" }, "readelf", "--version-info", "--wide", file)
      raise "readelf failed for #{file}: #{err}" unless status.success?

      out.scan(/\bGLIBC_(\d+(?:\.\d+)+)/).flatten.map { |version| Gem::Version.new(version) }
    end
  end
end
