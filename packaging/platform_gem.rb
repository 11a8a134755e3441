# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require_relative "timestamp"
require_relative "toolchain"

module Packaging
  # The gem of one platform, with everything compiled.
  class PlatformGem
    # Making it failed; the message has the last lines of the build.
    class Failed < StandardError; end

    ROOT = File.expand_path("..", __dir__)
    # Settings of whoever starts this are not the build's.
    CLEAN = %w[RUBYOPT RUBYLIB MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS LDFLAGS BUNDLE_GEMFILE BUNDLE_PATH GEM_HOME
               GEM_PATH].to_h { |name| [name, nil] }.freeze
    private_constant :ROOT, :CLEAN

    # @param toolchain [Toolchain]
    # @param build [String] folder of what is compiled, relative to the checkout
    def initialize(toolchain, build:)
      @toolchain = toolchain
      @build = build
    end

    # @param folder [String] where the gem is put
    # @return [String] path of the gem
    # @raise [Failed, DebianArchive::Missing]
    def call(folder)
      versions = @toolchain.prepare
      run(environment(versions), "-S", "rake", "--silent", "-f", "#{__dir__}/Rakefile", "platform")
      made = Dir[File.join(ROOT, "pkg", "*-#{@toolchain.platform}.gem")].max_by { |path| File.mtime(path) }
      raise Failed, "rake-compiler made no gem for #{@toolchain.platform}" unless made

      # rake-compiler packs a copy of the files, and leaves extensions beside the checkout's own.
      FileUtils.rm_rf([made.delete_suffix(".gem"), *Dir[File.join(ROOT, "lib/culet/[0-9]*")]])
      FileUtils.mkdir_p(folder)
      target = File.join(File.expand_path(folder), File.basename(made))
      FileUtils.mv(made, target) unless made == target
      target
    end

    private

    def environment(versions)
      CLEAN.merge("HOME" => @toolchain.home, "RUBY_CC_VERSION" => versions.join(":"), "CULET_BUILD" => @build,
                  "CULET_PLATFORM" => @toolchain.platform, "CULET_COMPILER" => @toolchain.compiler,
                  "CFLAGS" => Toolchain::CFLAGS, "SOURCE_DATE_EPOCH" => Timestamp.seconds.to_s, "LC_ALL" => "C.UTF-8")
    end

    def run(environment, *words)
      ruby = [RbConfig.ruby, "-I#{newer_rubygems}", "-r#{__dir__}/gem_paths.rb"]
      out, status = Open3.capture2e(environment, *ruby, *words, chdir: ROOT, umask: 0o022, stdin_data: "")
      return if status.success?

      raise Failed, "making the gem for #{@toolchain.platform} failed:\n#{out.lines.last(30).join}"
    end

    def newer_rubygems
      Dir[File.join(ROOT, ".gems/packaging/ruby/*/gems/rubygems-update-*/lib")].max ||
        raise(Failed, "the gems that packaging needs are missing; run bin/setup test")
    end
  end
end
