# frozen_string_literal: true

require "fileutils"
require "open3"
require_relative "root"

module Roots
  # This checkout, as its files are now, inside a root and built for one of its Rubies: so that tests run there.
  class Checkout
    # Where it is inside.
    PATH = "#{Root::SHARE}/culet".freeze
    # Besides what each root has; strace for the tests that have it count.
    PACKAGES = %w[strace].freeze
    # What the tests use of gems is Ruby alone, so that those of this machine's Ruby serve others too.
    GEMS = Dir.glob(".gems/ruby/*", base: Root::CHECKOUT).max
    BUILD = <<~SH
      ruby=$1
      cd "$2"
      for part in allocator/libculet sampler/sampler reader/reader replay/replay boot/syscall_counter/syscall_counter; do
        make -s -C "${part%/*}" "${part##*/}"
      done
      exec "$ruby" ext/checkout.rb tmp/extension built
    SH
    # What is written stays in the shared folder and goes with it.
    ENVIRONMENT = { "HOME" => "#{Root::SHARE}/home", "TMPDIR" => "#{Root::SHARE}/tmp" }.freeze
    private_constant :PACKAGES, :GEMS, :BUILD, :ENVIRONMENT

    # @param version [String] of a Ruby, such as "3.3"
    # @return [Array<String>] the Debian packages that building for it takes
    def self.packages(version) = ["ruby#{version}-dev", *PACKAGES]

    # @return [String] the Ruby's path inside
    attr_reader :ruby

    # @param root [Root] with these packages
    # @param version [String] of the Ruby
    # @param share [String] a folder of one's own, which is filled
    # @yieldparam copy [String] the checkout's folder, to put compiled files into; without a block they are built inside
    # @raise [RuntimeError] when it cannot be built there
    def initialize(root, version, share:)
      @root = root
      @ruby = "/usr/bin/ruby#{version}"
      @share = share
      # Tests have programs of other users in their folders.
      File.chmod(0o755, share)
      %w[home tmp].each { |name| FileUtils.mkdir_p(File.join(share, name)) }
      File.chmod(0o1777, File.join(share, "tmp"))
      Checkout.copy(File.join(share, "culet"))
      block_given? ? yield(File.join(share, "culet")) : root.run("sh", "-euc", BUILD, "sh", @ruby, PATH, share: share)
      copy_gems
    end

    # @param words [Array<String>] for this Ruby, paths as they are inside
    # @param env [Hash{String => String}]
    # @param chdir [String] where it runs
    # @return [Array<String>] the words that run it inside
    def command(*words, env: {}, chdir: PATH)
      @root.command("sh", "-c", 'cd "$0" && exec "$@"', chdir, @ruby, *words, share: @share, env: ENVIRONMENT.merge(env))
    end

    # @param words [Array<String>] for the command line of the checkout
    # @return [Array<String>] as `command`
    def culet(*words, **options) = command("-w", "-I#{PATH}/lib", "-r#{PATH}/bin/gems.rb", "#{PATH}/exe/culet", *words, **options)

    # Copies the files that git knows or would take.
    #
    # @param folder [String] where they are put
    def self.copy(folder)
      names, status = Open3.capture2("git", "-C", Root::CHECKOUT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
      raise "git does not list the files of #{Root::CHECKOUT}" unless status.success?

      names.split("\0").each do |name|
        from = File.join(Root::CHECKOUT, name)
        next unless File.exist?(from)

        to = File.join(folder, name)
        FileUtils.mkdir_p(File.dirname(to))
        FileUtils.cp(from, to, preserve: true)
      end
    end

    private

    def copy_gems
      version = @root.run(@ruby, "--disable-gems", "-rrbconfig", "-e", "print RbConfig::CONFIG['ruby_version']")
      to = File.join(@share, "culet/.gems/ruby")
      FileUtils.mkdir_p(to)
      FileUtils.cp_r(File.join(Root::CHECKOUT, GEMS), File.join(to, version))
    end
  end
end
