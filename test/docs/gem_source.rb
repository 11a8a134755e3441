# frozen_string_literal: true

require "fileutils"
require "rubygems/package"
require "zlib"

# Gems in a folder that RubyGems and Bundler read as a source, by file://.
module GemSource
  module_function

  # @param gems [Array<String>] paths of gems
  # @param folder [String] is made
  # @return [String] the source
  def write(gems, folder)
    FileUtils.mkdir_p(["#{folder}/gems", "#{folder}/quick/Marshal.4.8"])
    FileUtils.cp(gems, "#{folder}/gems")
    specifications = gems.map { |path| Gem::Package.new(path).spec }
    names = specifications.map { |specification| [specification.name, specification.version, specification.original_platform.to_s] }
    { "specs" => names, "latest_specs" => names, "prerelease_specs" => [] }.each do |name, list|
      File.binwrite("#{folder}/#{name}.4.8.gz", Zlib.gzip(Marshal.dump(list)))
    end
    specifications.each do |specification|
      File.binwrite("#{folder}/quick/Marshal.4.8/#{specification.original_name}.gemspec.rz", Zlib.deflate(Marshal.dump(specification)))
    end
    "file://#{folder}"
  end
end
