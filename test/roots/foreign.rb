# frozen_string_literal: true

require_relative "maker"
require_relative "root"

module Roots
  # A Debian of another processor in a folder: unpacked and not configured, so that making it takes no emulation. Its
  # programs are run by qemu-user, by a rule of binfmt_misc that ends with the command: it is of a user namespace.
  class Foreign < Root
    EMULATOR = "qemu-aarch64-static"
    # Processor's name in file headers.
    ARCHITECTURE = "arm64"
    # 64-bit, little-endian, a program or a shared object of machine 183.
    RULE = ':culet:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:' \
           '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'
    RULES = "/proc/sys/fs/binfmt_misc"
    NAMESPACES = %w[unshare --user --map-root-user --mount --pid --fork --kill-child].freeze
    MOUNT_RULES = "mount -t proc proc /proc && mount -t binfmt_misc binfmt_misc #{RULES}".freeze
    ENTER = <<~SH.freeze
      root=$1 share=$2 rule=$3
      shift 3
      #{MOUNT_RULES}
      printf '%s' "$rule" >#{RULES}/register
      mount -t proc proc "$root/proc"
      mount -t tmpfs tmpfs "$root/dev/shm"
      if [ -n "$share" ]; then mount --bind "$share" "$root/mnt"; fi
      exec chroot "$root" "$@"
    SH
    private_constant :RULE, :RULES, :ENTER

    # @return [String, nil] path of the emulator; a static one, as the root has no libraries for it
    def self.emulator = Culet::Executables.find(EMULATOR)

    # As Root#command; the command's number is not that of the process that is started.
    def command(*words, share: nil, env: {}, inherit: false)
      [*NAMESPACES, "sh", "-eu", "-c", ENTER, "sh", @path, share.to_s, "#{RULE}#{self.class.emulator}:F",
       "env", *("-i" unless inherit), *ENVIRONMENT, *env.map { |key, value| "#{key}=#{value}" }, *words.map(&:to_s)]
    end
  end

  # Makes such a root with the packages that it is to have. More cannot be installed later.
  class ForeignMaker < Maker
    PASSWD = "root:x:0:0:root:/root:/bin/sh\n"
    # What a package's script would link.
    LINKS = { "usr/bin/cc" => "gcc" }.freeze
    UNPACK = 'dpkg-deb --fsys-tarfile "$1" | tar --extract --keep-directory-symlink --directory "$2" --file -'
    private_constant :PASSWD, :LINKS, :UNPACK

    private

    def need_this_machine
      super
      raise Missing, "#{Foreign::EMULATOR} is not installed (package qemu-user-static): no root of another processor can be entered" unless Foreign.emulator
      return if system(*Foreign::NAMESPACES, "sh", "-c", Foreign::MOUNT_RULES, err: File::NULL)

      raise Missing, "this machine has no binfmt_misc in user namespaces (Linux 6.7): no root of another processor can be entered"
    end

    def make
      need_mirror
      part = "#{@path}.part"
      FileUtils.rm_rf(part)
      chatter "making a root of Debian #{@suite} for #{Foreign::ARCHITECTURE} in #{@path}, once"
      run("debootstrap", "--foreign", "--arch=#{Foreign::ARCHITECTURE}", "--variant=minbase", "--include=#{@packages.join(",")}", @suite, part, mirror)
      Dir["#{part}/var/cache/apt/archives/*.deb"].each do |package|
        run("sh", "-euc", UNPACK, "sh", package, part)
        File.unlink(package)
      end
      complete(part)
      File.rename(part, @path)
    end

    def complete(root)
      # debootstrap may have made it a link to this machine's.
      File.unlink("#{root}/proc") if File.symlink?("#{root}/proc")
      %w[proc mnt tmp dev/shm].each { |name| FileUtils.mkdir_p(File.join(root, name)) }
      LINKS.each { |name, target| FileUtils.ln_sf(target, File.join(root, name)) }
      File.write("#{root}/etc/passwd", PASSWD)
      File.write("#{root}/etc/apt/sources.list", "deb #{mirror} #{@suite} main\n")
    end

    def root_in(folder) = Foreign.new(@suite, folder)

    # All are there since it was made.
    def install(_root) = nil
  end
end
