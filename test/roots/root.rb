# frozen_string_literal: true

require "fileutils"
require "open3"

module Roots
  # A Debian in a folder.
  class Root
    # Mounts are the command's own and end with it. Each step replaces the one before, so that the command has the process
    # number of the first.
    ENTER = <<~SH
      root=$1 share=$2
      shift 2
      mount -t proc proc "$root/proc"
      mount -t sysfs -o ro sysfs "$root/sys"
      mount -t tmpfs tmpfs "$root/dev/shm"
      mount -t devpts -o newinstance,mode=620,ptmxmode=666 devpts "$root/dev/pts"
      certificates=/etc/ssl/certs/ca-certificates.crt
      if [ -s $certificates ] && [ -e "$root$certificates" ]; then mount --bind $certificates "$root$certificates"; fi
      if [ -n "$share" ]; then mount --bind "$share" "$root/mnt"; fi
      exec chroot "$root" "$@"
    SH
    ENVIRONMENT = %w[HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin].freeze
    private_constant :ENTER, :ENVIRONMENT

    CHECKOUT = File.expand_path("../..", __dir__)

    # Where the shared folder is inside.
    SHARE = "/mnt"

    # @return [String] name of the release
    attr_reader :name
    # @return [String] the folder
    attr_reader :path

    def initialize(name, path)
      @name = name
      @path = path
    end

    # The words that run a command inside, with nothing of the environment here. To be started by this process itself
    # (Process.spawn): the command then has the number that it returns.
    #
    # @param share [String, nil] a folder of this machine that the command sees as SHARE
    # @param env [Hash{String => String}] its environment, besides PATH and the like
    # @param inherit [Boolean] whether it has the environment here besides
    def command(*words, share: nil, env: {}, inherit: false)
      ["unshare", "--mount", "--propagation", "private", "sh", "-eu", "-c", ENTER, "sh", @path, share.to_s,
       "env", *("-i" unless inherit), *ENVIRONMENT, *env.map { |key, value| "#{key}=#{value}" }, *words.map(&:to_s)]
    end

    # Runs a command inside to its end.
    #
    # @return [String] what it printed
    # @raise [RuntimeError] when it failed, with what it said
    def run(*words, share: nil, env: {})
      out, err, status = Open3.capture3(*command(*words, share: share, env: env), stdin_data: "")
      return out if status.success?

      raise "in the root of Debian #{@name}, #{words.join(" ")} ended with #{status}:\n#{err.lines.last(20).join}"
    end

    # @return [Array<String>] the Rubies inside, e.g. "/usr/bin/ruby3.3"
    def rubies = Dir.glob("usr/bin/ruby[0-9].[0-9]", base: @path).sort.map { |file| "/#{file}" }

    # @return [String] version of the C library, such as "2.31"
    def glibc = @glibc ||= run("getconf", "GNU_LIBC_VERSION").split.last

    # Compiles C for this root.
    #
    # @param output [String] name of the file to make in `share`
    # @param words [Array<String>] further words for the compiler; sources are named as they are inside, below SHARE
    # @return [String] the program's path inside
    def compile(output, *words, share:)
      "#{SHARE}/#{output}".tap do |program|
        said = run("sh", "-c", 'exec "$@" 2>&1', "sh", "gcc", "-O1", "-g", "-pthread", "-fno-builtin", "-Wall", "-Wextra", "-o", program, *words, share: share)
        raise "gcc in the root of Debian #{@name} warned:\n#{said}" unless said.empty?
      end
    end

    # Builds this checkout's allocator by this root's compiler, for its C library.
    #
    # @param share [String] where it is put
    # @return [String] path of libculet.so inside, for LD_PRELOAD
    def libculet(share:)
      sources = { "allocator" => %w[Makefile src], "lib/culet" => %w[version.rb] }
      sources.each do |folder, names|
        FileUtils.mkdir_p(File.join(share, folder))
        names.each { |name| FileUtils.cp_r(File.join(CHECKOUT, folder, name), File.join(share, folder)) }
      end
      run("make", "-s", "-C", "#{SHARE}/allocator", "libculet", "BUILD=#{SHARE}/libculet", share: share)
      "#{SHARE}/libculet/libculet.so"
    end
  end
end
