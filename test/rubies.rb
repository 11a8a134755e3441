# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"

# The Rubies that tests behind bin/test --all run culet on: the one that runs the tests, and those that CULET_TEST_RUBIES
# names (paths of executables, separated by colons).
module Rubies
  ROOT = File.expand_path("..", __dir__)

  # An executable.
  class Interpreter
    # What it says of itself: its name, and where collectors of its own would lie; one Ruby process.
    ASK = 'puts RUBY_DESCRIPTION, RbConfig::CONFIG["modular_gc_dir"]'
    COLLECTOR = "librubygc.%s.so"
    # Of this checkout, beside lib.
    COPIED = %w[allocator bin boot exe ext reader replay sampler test workloads part.mk culet.gemspec].freeze
    private_constant :ASK, :COLLECTOR, :COPIED

    # @return [String] of the executable
    attr_reader :path

    def initialize(path)
      @path = path
    end

    # @return [String] such as "4.0.5"
    def version = description[/\d+\.\d+\.\d+/]

    # @return [String]
    def description = asked.first

    # The values that RUBY_GC_LIBRARY may have: the collectors that were built for it as libraries.
    #
    # @return [Array<String>] none where it was not configured for that
    def collectors
      folder = asked[1].to_s
      return [] if folder.empty?

      Dir.glob(format(COLLECTOR, "*"), base: folder).map { |file| file[/\.(.+)\.so\z/, 1] }.sort
    end

    # Builds the extensions for it, beside a copy of this checkout's lib and boot/lib.
    #
    # @param folder [String] an empty one
    # @return [String] what is to be put on its load path
    # @raise [RuntimeError] with the compiler's words
    def library(folder)
      FileUtils.mkdir_p(File.join(folder, "boot"))
      FileUtils.cp_r(File.join(ROOT, "lib"), folder)
      FileUtils.cp_r(File.join(ROOT, "boot/lib"), File.join(folder, "boot"))
      lib = File.join(folder, "lib")
      run("-r#{ROOT}/ext/native_build.rb", "-e", "NativeBuild.new(destination: ARGV[0], scratch: ARGV[1]).extensions",
          File.join(lib, "culet"), File.join(folder, "scratch"))
      lib
    end

    # A checkout for it: copies of what the tests use, with the extensions built for it.
    #
    # @param folder [String] an empty one
    # @raise [RuntimeError] with the compiler's words
    def checkout(folder)
      COPIED.each { |name| FileUtils.cp_r(File.join(ROOT, name), folder) }
      library(folder)
    end

    private

    def asked = @asked ||= run("-rrbconfig", "-e", ASK).lines(chomp: true)

    def run(*words)
      out, err, status = Open3.capture3({ "RUBYOPT" => nil, "RUBYLIB" => nil }, path, "--disable-gems", *words, stdin_data: "")
      raise "#{path} #{words.first} ended with #{status}:\n#{out}#{err}" unless status.success?

      out
    end
  end

  # @return [Array<Interpreter>] the Ruby that runs this first
  def self.all
    [RbConfig.ruby, *ENV["CULET_TEST_RUBIES"].to_s.split(":").reject(&:empty?)].uniq.map { |path| Interpreter.new(path) }
  end
end
