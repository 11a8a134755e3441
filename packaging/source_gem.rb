# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "timestamp"

module Packaging
  # A gem without compiled files: culet, which is compiled where it is installed, or culet-cli. Equal sources make
  # equal bytes, whatever the modes and times of the files are.
  class SourceGem
    # RubyGems did not build it; the message has what it printed.
    class Failed < StandardError; end

    ROOT = File.expand_path("..", __dir__)
    BUILD = "Gem::GemRunner.new.run(ARGV.dup)"
    # The specifications require it.
    VERSION = "lib/culet/version.rb"
    NAMES = %w[culet culet-cli].freeze
    private_constant :ROOT, :BUILD, :VERSION

    # @param folder [String] where the gems are put
    # @return [Array<String>] paths of the gems
    # @raise [Failed]
    def self.all(folder) = NAMES.map { |name| new(name).call(folder) }

    # @param file [String] relative to both folders
    def self.copy(file, from, folder)
      source, target = [from, folder].map { |one| File.join(one, file) }
      FileUtils.mkdir_p(File.dirname(target))
      # git knows no other modes.
      FileUtils.install(source, target, mode: File.executable?(source) ? 0o755 : 0o644)
    end

    # @param name [String] one of NAMES
    def initialize(name = "culet")
      @specification = "#{name}.gemspec"
    end

    # @param folder [String] where the gem is put
    # @param root [String] the checkout
    # @return [String] path of the gem
    # @raise [Failed]
    def call(folder, root: ROOT)
      FileUtils.mkdir_p(folder)
      specification = Gem::Specification.load(File.join(root, @specification))
      target = File.join(File.expand_path(folder), specification.file_name)
      Dir.mktmpdir("culet-gem") do |copy|
        [*specification.files, @specification, VERSION].uniq.each { |file| self.class.copy(file, root, copy) }
        build(copy, target)
      end
      target
    end

    private

    def build(copy, target)
      out, status = Open3.capture2e({ "SOURCE_DATE_EPOCH" => Timestamp.seconds.to_s, "RUBYOPT" => nil }, RbConfig.ruby,
                                    "-rrubygems", "-rrubygems/gem_runner", "-e", BUILD, "--", "build", @specification,
                                    "--output", target, chdir: copy, stdin_data: "")
      raise Failed, "building the gem failed:\n#{out}" unless status.success?
    end
  end
end
