# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "yaml"
require_relative "../lib/culet/system/executables"
require_relative "debian_archive"

module Packaging
  # What the platform gem of one platform is built with: a compiler, the C library of the oldest supported release in a
  # folder of its own, and the headers of Rubies, which rake-compiler reads from ~/.rake-compiler/config.yml.
  class Toolchain
    # Processor, Debian's name of it, C library.
    PLATFORMS = { "x86_64-linux-gnu" => ["x86_64", "amd64", :glibc],
                  "aarch64-linux-gnu" => ["aarch64", "arm64", :glibc],
                  "x86_64-linux-musl" => ["x86_64", "amd64", :musl],
                  "aarch64-linux-musl" => ["aarch64", "arm64", :musl] }.freeze
    # glibc 2.31, musl 1.2.2.
    SYSROOTS = { glibc: ["bullseye", %w[libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev]],
                 musl: ["bullseye", %w[musl musl-dev musl-tools linux-libc-dev]] }.freeze
    # Version of Ruby => release of Debian that has it, linked with glibc.
    RUBIES = { "3.1" => "bookworm", "3.3" => "trixie", "3.4" => "experimental" }.freeze
    # No debugging information and no path of the machine that builds.
    CFLAGS = "-O2 -g0"

    # @return [String] where the files of all platforms are kept
    def self.cache
      File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "culet/toolchain")
    end

    # @return [String] the platform of a gem
    attr_reader :platform

    # @param platform [String] a key of PLATFORMS
    # @param rubies [Array<String>, nil] versions of Ruby that Debian has, such as "3.3"; nil: all that fit the platform
    # @param installed [Array<String>] Rubies whose headers are taken instead: paths of executables of this machine, or
    #   folders that a Ruby was installed or copied to. Those of other platforms are left out.
    def initialize(platform, rubies: nil, installed: [])
      @platform = platform
      @processor, @architecture, @c_library = PLATFORMS.fetch(platform) do
        raise DebianArchive::Missing, "there is no platform #{platform}; the platforms are #{PLATFORMS.keys.join(", ")}"
      end
      @rubies = rubies || (@c_library == :glibc ? RUBIES.keys : [])
      @installed = installed
    end

    # Downloads what is missing and writes rake-compiler's configuration.
    #
    # @return [Array<String>] the full versions of the Rubies, ascending; for musl there may be none
    # @raise [DebianArchive::Missing]
    def prepare
      need_compiler
      get("sysroot", *SYSROOTS.fetch(@c_library))
      write_specs if @c_library == :musl
      found = configurations
      FileUtils.mkdir_p(File.join(home, ".rake-compiler"))
      File.write(File.join(home, ".rake-compiler/config.yml"),
                 YAML.dump(found.to_h { |version, path| ["rbconfig-#{platform}-#{version}", path] }))
      found.keys.sort_by { |version| Gem::Version.new(version) }
    end

    # @return [String] the HOME that rake-compiler is started with
    def home = File.join(folder, "home")

    # @return [String] the compiler with its options
    def compiler = @c_library == :musl ? musl_compiler : glibc_compiler

    private

    def folder = File.join(self.class.cache, platform)

    def sysroot = File.join(folder, "sysroot")

    # Debian's compilers are for glibc; those for musl differ by options alone.
    def triplet = "#{@processor}-linux-gnu"

    # The compiler's own folders have the C library of this machine, so those of the older one are named before them.
    # The compiler's runtime library, which nothing here needs, is linked with this machine's.
    def glibc_compiler
      "#{triplet}-gcc --sysroot=#{sysroot} -B#{sysroot}/usr/lib/#{triplet} " \
        "-isystem #{sysroot}/usr/include/#{triplet} -isystem #{sysroot}/usr/include -Wl,--allow-shlib-undefined"
    end

    # As musl-gcc. This sysroot has no glibc, so that its include folders have the kernel's headers alone. libc.so is
    # not in the folder of libc.a. The functions by which gcc chooses atomic instructions of aarch64 at run time ask
    # glibc for the processor's features.
    def musl_compiler
      "#{triplet}-gcc -specs=#{specs} -idirafter #{sysroot}/usr/include/#{triplet} -idirafter #{sysroot}/usr/include " \
        "-L#{sysroot}/lib/#{@processor}-linux-musl -Wl,--eh-frame-hdr -Wl,--allow-shlib-undefined" \
        "#{" -mno-outline-atomics" if @processor == "aarch64"}"
    end

    def specs = File.join(folder, "musl-gcc.specs")

    # Those of Debian's musl-gcc, with the folders of the sysroot.
    def write_specs
      original = File.join(sysroot, "usr/lib/#{@processor}-linux-musl/musl-gcc.specs")
      File.write(specs, File.read(original).gsub(%r{(?<![^\sL])/usr/}, "#{sysroot}/usr/"))
    end

    def need_compiler
      name = "#{triplet}-gcc"
      return if Culet::Executables.find(name)

      raise DebianArchive::Missing, "there is no #{name} on PATH; install gcc-#{triplet.tr("_", "-")}"
    end

    # Complete once it has its name.
    def get(name, suite, packages)
      path = File.join(folder, name)
      return path if File.exist?(path)

      FileUtils.rm_rf("#{path}.part")
      DebianArchive.new(suite, @architecture).unpack(packages, "#{path}.part")
      File.rename("#{path}.part", path)
      path
    end

    # @return [Hash{String => String}] version of a Ruby => its rbconfig.rb
    def configurations
      own = @installed.filter_map { |path| of_installation(path) }.to_h
      rest = @rubies - own.keys.map { |version| version[/\A\d+\.\d+/] }
      own.merge(rest.to_h { |version| of_debian(version) })
    end

    def of_debian(version)
      suite = RUBIES.fetch(version) do
        raise DebianArchive::Missing, "Debian has no Ruby #{version}; give a Ruby's path in CULET_RUBIES"
      end
      root = get("ruby-#{version}", suite, ["libruby#{version}", "ruby#{version}-dev"])
      adapt(Dir[File.join(root, "usr/lib/*/ruby/#{version}.0/rbconfig.rb")].fetch(0),
            File.join(root, "usr/lib/ruby/#{version}.0/mkmf.rb"))
    end

    # @return [Array(String, String), nil] nil where it is of another platform
    def of_installation(path)
      original, mkmf = File.directory?(path) ? of_folder(path) : of_executable(path)
      name = File.basename(File.dirname(original))
      return unless name.start_with?("#{@processor}-linux") && name.end_with?("-musl") == (@c_library == :musl)

      adapt(original, mkmf)
    end

    def of_folder(path)
      original = Dir[File.join(path, "lib/ruby/[0-9]*/*/rbconfig.rb")].first
      unless original
        raise DebianArchive::Missing, "there is no Ruby in #{path}: it has no lib/ruby/VERSION/PLATFORM/rbconfig.rb"
      end

      [File.expand_path(original), File.expand_path("../../mkmf.rb", original)]
    end

    def of_executable(path)
      script = 'puts RbConfig::CONFIG.values_at("rubyarchdir", "rubylibdir")'
      out, status = Open3.capture2({ "RUBYOPT" => nil }, path, "--disable-gems", "-rrbconfig", "-e", script)
      unless status.success?
        raise DebianArchive::Missing, "#{path} does not run; give Rubies of this machine in CULET_RUBIES"
      end

      architecture, library = out.lines(chomp: true)
      [File.join(architecture, "rbconfig.rb"), File.join(library, "mkmf.rb")]
    end

    # rake-compiler wants mkmf.rb in the folder above. A library that a Ruby was linked with may need a newer C library
    # than the one here.
    def adapt(original, mkmf)
      version = Gem::Version.new(version_of(original)).to_s
      place = File.join(home, version, "arch/rbconfig.rb")
      FileUtils.mkdir_p(File.dirname(place))
      File.write(place, <<~RUBY)
        require #{original.dump}
        #{settings.inspect}.each do |name, value|
          RbConfig::CONFIG[name] = RbConfig::MAKEFILE_CONFIG[name] = value
        end
      RUBY
      FileUtils.cp(mkmf, File.join(home, version, "mkmf.rb"))
      [version, place]
    end

    # All of musl is in libc.so. A Ruby's folder may be one that has another libm.so.
    def settings
      { "CC" => compiler, "LDSHARED" => "#{compiler} -shared", "AR" => "#{triplet}-ar",
        "LDFLAGS" => "-L. -Wl,--allow-shlib-undefined", "DLDFLAGS" => "-Wl,-z,relro -Wl,-z,now",
        "optflags" => "-O2", "debugflags" => "", "CFLAGS" => "-O2 -fPIC -fstack-protector-strong",
        **(@c_library == :musl ? { "LIBS" => "" } : {}) }
    end

    def version_of(rbconfig)
      text = File.read(rbconfig)
      %w[MAJOR MINOR TEENY].map { |name| text[/CONFIG\["#{name}"\] = "(\d+)"/, 1] }.join(".")
    end
  end
end
