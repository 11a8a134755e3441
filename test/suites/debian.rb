# frozen_string_literal: true

require "culet/tools/compare/bundle"
require "fileutils"
require "tmpdir"
require_relative "program"

module Suites
  # What cannot be had here; the message is a sentence.
  class Unavailable < StandardError; end

  # Debian's packages: installs them, and fetches the sources of what is installed.
  module Debian
    module_function

    # @param program [String] path of an executable
    # @return [Array(String, String), nil] name and version of the source package it was built from; nil where no package
    #   brought it
    def source_of(program)
      owner, = Program.run("dpkg-query", "--search", File.realpath(program))
      package = owner[%r{\A([^:,\s]+)(?::\w+)?: /}, 1] or return
      text, = Program.run("dpkg-query", "--show", "--showformat=${source:Package} ${source:Version}", package)
      text.split if text.match?(/\A\S+ \S+\z/)
    rescue SystemCallError
      nil # no dpkg here
    end

    # @param package [String] installed where it is not
    # @raise [Unavailable]
    def install(package)
      return if installed?(package)
      raise Unavailable, "the package #{package} is not installed, and only root can install it" unless Process.uid.zero?

      text, wrong = apt("-qq", "install", "-y", "--no-install-recommends", package)
      raise Unavailable, "the package #{package} cannot be installed: #{wrong || text.lines.last.to_s.strip}" unless installed?(package)
    end

    # @param name [String] of a source package
    # @param version [String]
    # @return [String] the folder it is unpacked in, patched as Debian has it; kept in the user's cache
    # @raise [Unavailable]
    def source(name, version)
      kept = File.join(Culet::Compare::Bundle.cache, "sources", "#{name}_#{version}")
      return kept if File.directory?(kept)

      install("dpkg-dev") unless File.executable?("/usr/bin/dpkg-source")
      FileUtils.mkdir_p(File.dirname(kept))
      Dir.mktmpdir("source-", File.dirname(kept)) do |folder|
        text, wrong = fetch(folder, "#{name}=#{version}")
        unpacked = Dir[File.join(folder, "*/debian")].first
        unless unpacked
          reason = wrong || text.lines.grep(/^E:|rror/).last || text.lines.last
          raise Unavailable, "the sources of #{name} #{version} cannot be had: #{reason}".strip
        end

        File.rename(File.dirname(unpacked), kept)
      end
      kept
    end

    def installed?(package)
      text, = Program.run("dpkg-query", "--show", "--showformat=${db:Status-Status}", package)
      text == "installed"
    end

    def apt(*words, **options)
      Program.run("apt-get", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300", *words,
                  environment: { "DEBIAN_FRONTEND" => "noninteractive", "LC_ALL" => "C" }, **options)
    end

    # With lists of its own, so that nobody's configuration of apt is changed.
    def fetch(folder, package)
      parts = File.join(folder, "parts")
      state = File.join(folder, "state")
      FileUtils.mkdir_p([parts, File.join(state, "lists/partial")])
      write_lists(parts)
      options = { "Dir::Etc::SourceList" => "/dev/null", "Dir::Etc::SourceParts" => parts, "Dir::State::Lists" => File.join(state, "lists"),
                  "Dir::Cache" => state, "APT::Sandbox::User" => "root" }.flat_map { |key, value| ["-o", "#{key}=#{value}"] }
      apt(*options, "-qq", "update")
      apt(*options, "source", package, directory: folder)
    end

    # Where packages come from, sources come from as well: the same lists, with another type.
    def write_lists(folder)
      text, = Program.run("apt-get", "indextargets", "--format", "$(SOURCESENTRY)", "Created-By: Packages")
      text.lines.map { |line| line.strip.sub(/:\d+\z/, "") }.uniq.select { |path| File.file?(path) }.each do |path|
        list = File.read(path).gsub(/^Types:.*/, "Types: deb-src").gsub(/^deb\s/, "deb-src ")
        File.write(File.join(folder, File.basename(path)), list)
      end
    end
    private_class_method :apt, :fetch, :installed?, :write_lists
  end
end
