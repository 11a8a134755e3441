# frozen_string_literal: true

require "digest"
require "json"
require "rubygems/package"
require "time"
require_relative "timestamp"

module Packaging
  # The bill of materials of a gem in the form of CycloneDX 1.5: the gem, each file in it, and the gems that it depends
  # on. It depends on the bytes of the gem alone, so that the same gem has the same bill.
  class BillOfMaterials
    # What is compiled from C, and so is of interest to whoever looks for a vulnerable library.
    COMPILED = %r{\Alib/culet/(?:.+\.so|reader/culet-scope|replay/culet-replay)\z}

    # @param gem [String] path of the gem
    def initialize(gem)
      @gem = gem
      @package = Gem::Package.new(gem)
      @specification = @package.spec
    end

    # @return [String] path of the document beside the gem
    def write
      path = "#{@gem}.cdx.json"
      File.write(path, "#{JSON.pretty_generate(to_h)}\n")
      path
    end

    # @return [Hash{String => Object}]
    def to_h
      { "bomFormat" => "CycloneDX", "specVersion" => "1.5", "serialNumber" => "urn:uuid:#{uuid}", "version" => 1,
        "metadata" => { "timestamp" => @specification.date.utc.iso8601, "component" => itself },
        "components" => [*files, *dependencies],
        "dependencies" => [{ "ref" => reference, "dependsOn" => dependencies.map { |component| component["bom-ref"] } },
                           *dependencies.map { |component| { "ref" => component["bom-ref"], "dependsOn" => [] } }] }
    end

    private

    def itself
      { "type" => "library", "bom-ref" => reference, "name" => @specification.name,
        "version" => @specification.version.to_s, "description" => @specification.summary, "purl" => reference,
        "licenses" => @specification.licenses.map { |name| { "license" => { "id" => name } } },
        "hashes" => [hash(Digest::SHA256.file(@gem))],
        "externalReferences" => [{ "type" => "website", "url" => @specification.homepage }] }
    end

    def reference
      # RubyGems before 3.3.22 reads x86_64-linux-gnu as x86_64-linux.
      name = @specification.name
      version = @specification.version
      platform = File.basename(@gem, ".gem")[/\A#{Regexp.escape("#{name}-#{version}")}-(.+)/, 1]
      "pkg:gem/#{name}@#{version}#{"?platform=#{platform}" if platform}"
    end

    def dependencies
      @specification.runtime_dependencies.sort_by(&:name).map do |dependency|
        { "type" => "library", "bom-ref" => "pkg:gem/#{dependency.name}", "name" => dependency.name,
          "purl" => "pkg:gem/#{dependency.name}", "scope" => "optional",
          "properties" => [{ "name" => "culet:requirement", "value" => dependency.requirement.to_s }] }
      end
    end

    def files
      contents.sort.map do |name, digest|
        { "type" => "file", "bom-ref" => "file:#{name}", "name" => name, "hashes" => [hash(digest)],
          "properties" => [{ "name" => "culet:compiled", "value" => name.match?(COMPILED).to_s }] }
      end
    end

    # @return [Hash{String => Digest}] path => checksum of each file of the gem
    def contents
      @contents ||= {}.tap do |found|
        File.open(@gem, "rb") do |io|
          Gem::Package::TarReader.new(io).each_entry do |entry|
            next unless entry.full_name == "data.tar.gz"

            @package.open_tar_gz(entry) do |tar|
              tar.each { |file| found[file.full_name] = Digest::SHA256.new.update(file.read.to_s) if file.file? }
            end
          end
        end
      end
    end

    def hash(digest) = { "alg" => "SHA-256", "content" => digest.hexdigest }

    # Of the gem's checksum, in the form of a random UUID.
    def uuid
      digits = Digest::SHA256.file(@gem).hexdigest
      [digits[0, 8], digits[8, 4], "4#{digits[13, 3]}", "a#{digits[17, 3]}", digits[20, 12]].join("-")
    end
  end
end
