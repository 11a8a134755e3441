# frozen_string_literal: true

require "fileutils"
require "net/http"
require "open3"
require "tmpdir"

module Packaging
  # What a release of Debian has for a processor. apt checks the signatures; the machine's own packages, sources and
  # lists are not touched, and root is not needed.
  class DebianArchive
    # The second has the releases that the first no longer has.
    MIRRORS = ENV.fetch("CULET_DEBIAN_MIRROR", "http://deb.debian.org/debian http://archive.debian.org/debian").split.freeze
    PATIENCE_SECONDS = 20
    private_constant :PATIENCE_SECONDS
    KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

    # A package or the archive cannot be had; the message says what to do.
    class Missing < StandardError; end

    # @param suite [String] name of a release
    # @param mirrors [Array<String>] addresses of mirrors, the preferred one first
    # @return [String] the first mirror that has the release
    # @raise [Missing] if none has it
    def self.mirror(suite, mirrors: MIRRORS)
      reasons = mirrors.to_h { |mirror| [mirror, refusal(mirror, suite)] }
      reasons.key(nil) || raise(Missing, "no mirror has the release #{suite}: " +
                                         reasons.map { |mirror, why| "#{mirror} (#{why})" }.join(", "))
    end

    # @return [String, nil] why the mirror cannot be used; nil: it can
    def self.refusal(mirror, suite)
      uri = URI("#{mirror}/dists/#{suite}/Release")
      waits = { open_timeout: PATIENCE_SECONDS, read_timeout: PATIENCE_SECONDS }
      answer = Net::HTTP.start(uri.host, uri.port, **waits) { |http| http.head(uri.path) }
      "#{answer.code} #{answer.message}" unless answer.is_a?(Net::HTTPSuccess)
    rescue SocketError, SystemCallError, IOError, Net::OpenTimeout, Net::ReadTimeout => e
      e.message.lines.first.strip
    end
    private_class_method :refusal

    # @param suite [String] name of the release
    # @param architecture [String] as Debian names it, such as "arm64"
    def initialize(suite, architecture)
      @suite = suite
      @architecture = architecture
    end

    # Downloads packages and unpacks them, without their dependencies and without running their scripts.
    #
    # @param packages [Array<String>]
    # @param folder [String] root of their files
    # @raise [Missing]
    def unpack(packages, folder)
      raise Missing, "#{KEYS} is missing; install debian-archive-keyring" unless File.exist?(KEYS)

      FileUtils.mkdir_p(folder)
      Dir.mktmpdir("culet-apt") do |state|
        prepare(state)
        apt(state, "update")
        Dir.mkdir(File.join(state, "files"))
        apt(state, "download", *packages, chdir: File.join(state, "files"))
        Dir[File.join(state, "files/*.deb")].each { |file| run("dpkg-deb", "-x", file, folder) }
      end
      Dir.glob("**/*", base: folder).each { |name| turn(folder, name) }
    end

    private

    # Links lead to files below the folder.
    def turn(folder, name)
      path = File.join(folder, name)
      return unless File.symlink?(path) && File.readlink(path).start_with?("/")

      target = File.join(*[".."] * name.count("/"), File.readlink(path))
      File.unlink(path)
      File.symlink(target, path)
    end

    def prepare(state)
      %w[lists/partial cache/archives/partial preferences.d].each { |name| FileUtils.mkdir_p(File.join(state, name)) }
      FileUtils.touch([File.join(state, "status"), File.join(state, "preferences")])
      mirror = self.class.mirror(@suite)
      File.write(File.join(state, "sources.list"), "deb [signed-by=#{KEYS}] #{mirror} #{@suite} main\n")
    end

    def apt(state, *words, **options)
      settings = { "APT::Architecture" => @architecture, "APT::Architectures" => @architecture,
                   "APT::Sandbox::User" => "", "Acquire::Languages" => "none",
                   # A frozen mirror has an expired index; its signature is checked all the same.
                   "Acquire::Check-Valid-Until" => "false",
                   "Dir::State" => state, "Dir::State::status" => File.join(state, "status"),
                   "Dir::State::lists" => File.join(state, "lists"), "Dir::Cache" => File.join(state, "cache"),
                   "Dir::Etc::SourceList" => File.join(state, "sources.list"), "Dir::Etc::SourceParts" => "-",
                   "Dir::Etc::Preferences" => File.join(state, "preferences"),
                   "Dir::Etc::PreferencesParts" => File.join(state, "preferences.d") }
      run("apt-get", "-qq", *settings.flat_map { |name, value| ["-o", "#{name}=#{value}"] }, *words, **options)
    end

    def run(*words, **options)
      out, status = Open3.capture2e(*words, stdin_data: "", **options)
      return if status.success?

      raise Missing, "#{words.last(3).join(" ")} failed for Debian #{@suite} (#{@architecture}):\n#{out}"
    rescue Errno::ENOENT
      raise Missing, "there is no #{words.first} on PATH; run this on Debian or Ubuntu"
    end
  end
end
