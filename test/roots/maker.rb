# frozen_string_literal: true

require "digest"
require "fileutils"
require "net/http"
require "open3"
require "tmpdir"
require "culet/system/executables"
require_relative "../../packaging/debian_archive"
require_relative "root"

module Roots
  # Makes a root, or completes one. Only one process does so at a time.
  class Maker
    # Suites of Ubuntu, whose keys Debian does not have: the package that has them, and its SHA-256.
    UBUNTU = %w[noble].freeze
    UBUNTU_MIRROR = "http://archive.ubuntu.com/ubuntu"
    UBUNTU_KEYS = ["pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
                   "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"].freeze
    NEEDED = %w[debootstrap unshare chroot mount].freeze
    private_constant :UBUNTU, :UBUNTU_MIRROR, :UBUNTU_KEYS, :NEEDED

    # @param suite [String] name of the release
    # @param path [String] folder of the root
    # @param packages [Array<String>] Debian packages that it has to have
    # @param rubies [Array<String>] versions of Ruby that it has to have besides; from experimental where the release has
    #   none of that version
    def initialize(suite, path, packages:, rubies: [])
      @suite = suite
      @path = path
      @packages = packages + rubies.map { |version| "ruby#{version}" }
      @experimental = rubies.any?
    end

    # @return [Root] with all that was asked for
    # @raise [Missing] where it cannot be had here
    # @raise [RuntimeError] where something failed
    def call
      need_this_machine
      FileUtils.mkdir_p(File.dirname(@path))
      File.open("#{@path}.lock", File::RDWR | File::CREAT) do |lock|
        lock.flock(File::LOCK_EX)
        make unless File.exist?("#{@path}/etc/apt/sources.list")
        root = root_in(@path)
        install(root)
        root
      end
    end

    private

    def need_this_machine
      raise Missing, "only root can make a Debian root and change to it" unless ::Process.euid.zero?

      lacking = NEEDED.reject { |program| Culet::Executables.find(program, search: "#{ENV.fetch("PATH")}:/usr/sbin:/sbin") }
      raise Missing, "#{lacking.join(" and ")} not installed: no Debian root of #{@suite} can be made" if lacking.any?
      raise Missing, "this machine does not let root mount: no Debian root can be entered" unless system("unshare", "--mount", "true", err: File::NULL)
    end

    # Beside its place, and there once it is complete.
    def make
      mirror
      part = "#{@path}.part"
      FileUtils.rm_rf(part)
      chatter "making a root of #{@suite} in #{@path}, once"
      Dir.mktmpdir("culet-keys") do |keys|
        run("debootstrap", "--variant=minbase", *ubuntu_options(keys), @suite, part, mirror, *ubuntu_script)
      end
      # No package may start a service: policy-rc.d's answer 101 is "forbidden".
      File.write("#{part}/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", perm: 0o755)
      install(root_in(part))
      File.rename(part, @path)
    end

    def root_in(folder) = Root.new(@suite, folder)

    # @return [String] the mirror that has the suite
    # @raise [Missing]
    def mirror
      @mirror ||= Packaging::DebianArchive.mirror(@suite, **(UBUNTU.include?(@suite) ? { mirrors: [UBUNTU_MIRROR] } : {}))
    rescue Packaging::DebianArchive::Missing => e
      raise Missing, "#{e.message}: no root of it can be made"
    end

    # Packages of Ubuntu's universe, such as Ruby, are not in the section that debootstrap takes by default.
    def ubuntu_options(folder)
      return [] unless UBUNTU.include?(@suite)

      path, digest = UBUNTU_KEYS
      package = File.join(folder, File.basename(path))
      File.binwrite(package, Net::HTTP.get(URI("#{UBUNTU_MIRROR}/#{path}")))
      found = Digest::SHA256.file(package).hexdigest
      raise "#{UBUNTU_MIRROR} has another #{File.basename(path)}: its digest is #{found}" unless found == digest

      run("dpkg-deb", "-x", package, folder)
      ["--keyring=#{folder}/usr/share/keyrings/ubuntu-archive-keyring.gpg", "--components=main,universe"]
    end

    # debootstrap has one for all suites of Ubuntu; links named after the newer ones may be missing.
    def ubuntu_script = UBUNTU.include?(@suite) ? ["/usr/share/debootstrap/scripts/gutsy"] : []

    def install(root)
      lacking = @packages.reject { |name| installed?(root, name) }
      return if lacking.empty?

      mirror
      chatter "installing #{lacking.join(", ")} in #{root.path}"
      names = "/etc/resolv.conf"
      File.write("#{root.path}#{names}", File.read(names)) if File.exist?(names)
      # experimental is of low priority for apt: a package comes from there only where the release has none of that name.
      File.write("#{root.path}/etc/apt/sources.list.d/experimental.list", "deb #{mirror} experimental main\n") if @experimental
      # A mirror may be frozen, so that its index has expired; signatures are checked all the same.
      root.run("apt-get", "-qq", "-o", "Acquire::Check-Valid-Until=false", "update")
      root.run("apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", "install", "-y", "--no-install-recommends", *lacking)
      root.run("apt-get", "clean")
    end

    def installed?(root, package)
      out, = Open3.capture2e("chroot", root.path, "dpkg-query", "--show", "--showformat=${Status}", package)
      out.end_with?(" installed")
    end

    def run(*words)
      out, status = Open3.capture2e({ "PATH" => "#{ENV.fetch("PATH")}:/usr/sbin:/sbin" }, *words, stdin_data: "")
      raise "#{words.join(" ")} ended with #{status}:\n#{out.lines.last(20).join}" unless status.success?
    end

    def chatter(text) = warn("culet test: #{text}")
  end
end
