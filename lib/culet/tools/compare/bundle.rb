# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require "rbconfig"
require_relative "../../benchmark/exclusion"
require_relative "../../system/subprocess"

module Culet
  module Compare
    # The gems of a built-in workload, installed by Bundler on first use into a cache apart from the user's gems. The
    # directory's name contains a digest of the Gemfile and of the Ruby version.
    class Bundle
      INSTALL_SECONDS = 1_800
      private_constant :INSTALL_SECONDS

      # @param name [String] of the workload
      # @param gemfile [String] path of its Gemfile
      # @param ruby [String] path of the Ruby that uses the gems
      def initialize(name:, gemfile:, ruby: RbConfig.ruby)
        @name = name
        @gemfile = gemfile
        @ruby = ruby
      end

      # @return [String] ${XDG_CACHE_HOME:-~/.cache}/culet
      # @raise [Culet::Error] where neither is set
      def self.cache
        base = ENV["XDG_CACHE_HOME"].to_s
        return File.join(base, "culet") if base.start_with?("/")

        File.join(Dir.home, ".cache", "culet")
      rescue ArgumentError
        raise Error, "no home directory to install the workload's gems in; set XDG_CACHE_HOME to a directory"
      end

      def installed? = File.exist?(marker)

      # @return [Hash{String => String}] makes Bundler use these gems
      def environment
        { "BUNDLE_GEMFILE" => File.join(directory, "Gemfile"), "BUNDLE_PATH" => File.join(directory, "gems"),
          "BUNDLE_APP_CONFIG" => File.join(directory, "config"), "BUNDLE_FROZEN" => nil, "BUNDLE_DEPLOYMENT" => nil,
          "BUNDLE_WITHOUT" => nil, "BUNDLE_SILENCE_ROOT_WARNING" => "1",
          "BUNDLE_SUPPRESS_INSTALL_USING_MESSAGES" => "1" }
      end

      # @param log [IO]
      # @yield called several times a second; may raise to stop the installation
      # @raise [Benchmark::Exclusion] when the installation fails
      def install(log:, &check)
        return if installed?

        log.puts("culet: installing the gems of the workload #{@name} in #{directory}")
        FileUtils.mkdir_p(directory)
        FileUtils.cp(@gemfile, File.join(directory, "Gemfile"))
        run_bundler(&check)
        FileUtils.touch(marker)
      rescue SystemCallError => e
        reason = "the gems of the workload #{@name} cannot be written: #{e.message.scrub("?").sub(/ @ \w+/, "")}"
        raise Benchmark::Exclusion.new(reason, remedy: "set XDG_CACHE_HOME to a writable directory")
      end

      private

      def marker = File.join(directory, "complete")

      def directory
        @directory ||= begin
          digest = Digest::SHA256.hexdigest(File.read(@gemfile) + ruby_kind)[0, 12]
          File.join(self.class.cache, "#{@name}-#{digest}")
        end
      end

      def ruby_kind
        return RUBY_DESCRIPTION if File.identical?(@ruby, RbConfig.ruby)

        Open3.capture2(@ruby, "-e", "print RUBY_DESCRIPTION").first
      end

      def run_bundler(&check)
        text, status = bundle_install(&check)
        return if status

        lines = text.lines.map(&:strip).reject(&:empty?)
        reason = lines.grep(/error|could not|cannot|unable/i).first || lines.last || "bundle install failed"
        raise Benchmark::Exclusion.new("its gems could not be installed: #{reason[0, 200]}",
                                       remedy: "the first use needs rubygems.org, a C compiler and the Ruby headers " \
                                               "(Debian: build-essential, ruby-dev)")
      end

      # @return [Array(String, Boolean)] output and success
      def bundle_install(&check)
        base = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
        full = base.merge(environment).compact
        text, status = Subprocess.run(full, @ruby, "-S", "bundle", "install", "--quiet", "--jobs", "2",
                                      unsetenv_others: true, chdir: directory, seconds: INSTALL_SECONDS, &check)
        status ? [text, status.success?] : ["bundle install did not end within #{INSTALL_SECONDS} seconds", false]
      end
    end
  end
end
