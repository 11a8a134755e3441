# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require_relative "program"

module Suites
  # The extensions that CRuby's own suite brings for its tests of the C interface, built for the installed Ruby.
  class Extensions
    BUILD_SECONDS = 300
    private_constant :BUILD_SECONDS

    # @param source [String] CRuby's sources
    # @param folder [String] where they are built, and kept for the next time
    def initialize(source:, folder:)
      @source = source
      @folder = folder
    end

    # Builds what is not there yet. Some need what only a whole build of Ruby has: those are left out.
    #
    # @return [String] the folder for -I
    def build
      return library if File.exist?(marker)

      folders.each { |folder| build_one(folder) }
      FileUtils.mkdir_p(@folder)
      FileUtils.touch(marker)
      library
    end

    # @param file [String] path of a test
    # @return [Boolean] whether all that it requires is there
    def enough_for?(file)
      File.read(file).scan(%r{require ["'](-test-/[^"']+)}).flatten.all? { |name| File.exist?(File.join(library, "#{name.delete_suffix(".so")}.so")) }
    end

    private

    def library = File.join(@folder, "lib")
    def marker = File.join(@folder, "complete")
    def root = File.join(@source, "ext/-test-")
    def folders = Dir[File.join(root, "**/extconf.rb")].map { |path| File.dirname(path).delete_prefix("#{root}/") }.grep_v(/win32/).sort

    def build_one(name)
      work = File.join(@folder, "build", name)
      FileUtils.mkdir_p(work)
      target = File.join(library, "-test-", File.dirname(name))
      Program.run(RbConfig.ruby, "-rmkmf", File.join(root, name, "extconf.rb"), directory: work, seconds: BUILD_SECONDS)
      Program.run("make", "-s", "install-so", "top_srcdir=#{@source}", "cppflags=-I#{@source}", "sodir=#{target}", "sitearchdir=#{library}",
                  directory: work, seconds: BUILD_SECONDS)
    end
  end
end
