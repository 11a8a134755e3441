# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "yaml"
require_relative "debian_archive"

module Packaging
  # What the platform gem of one platform is built with: a compiler, the C library of the oldest supported release in a
  # folder of its own, and the headers of Rubies, which rake-compiler reads from ~/.rake-compiler/config.yml.
  class Toolchain
    # Triplet of the compiler, Debian's name of the processor.
    PLATFORMS = { "x86_64-linux-gnu" => %w[x86_64-linux-gnu amd64],
                  "aarch64-linux-gnu" => %w[aarch64-linux-gnu arm64] }.freeze
    # glibc 2.31.
    SYSROOT = ["bullseye", %w[libc6 libc6-dev linux-libc-dev libcrypt1 libcrypt-dev]].freeze
    # Version of Ruby => release of Debian that has it.
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
    # @param rubies [Array<String>] versions of Ruby that Debian has, such as "3.3"
    # @param executables [Array<String>] paths of Rubies of this machine whose headers are taken instead; for the
    #   machine's own processor
    def initialize(platform, rubies: RUBIES.keys, executables: [])
      @platform = platform
      @triplet, @architecture = PLATFORMS.fetch(platform) do
        raise DebianArchive::Missing, "there is no platform #{platform}; the platforms are #{PLATFORMS.keys.join(", ")}"
      end
      @rubies = rubies
      @executables = executables
    end

    # Downloads what is missing and writes rake-compiler's configuration.
    #
    # @return [Array<String>] the full versions of the Rubies, ascending
    # @raise [DebianArchive::Missing]
    def prepare
      need_compiler
      get("sysroot", *SYSROOT)
      found = configurations
      FileUtils.mkdir_p(File.join(home, ".rake-compiler"))
      File.write(File.join(home, ".rake-compiler/config.yml"),
                 YAML.dump(found.to_h { |version, path| ["rbconfig-#{platform}-#{version}", path] }))
      found.keys.sort_by { |version| Gem::Version.new(version) }
    end

    # @return [String] the HOME that rake-compiler is started with
    def home = File.join(folder, "home")

    # The compiler's own folders have the C library of this machine, so those of the older one are named before them.
    # The compiler's runtime library, which nothing here needs, is linked with this machine's.
    #
    # @return [String] the compiler with its options
    def compiler
      root = File.join(folder, "sysroot")
      "#{@triplet}-gcc --sysroot=#{root} -B#{root}/usr/lib/#{@triplet} -isystem #{root}/usr/include/#{@triplet} " \
        "-isystem #{root}/usr/include -Wl,--allow-shlib-undefined"
    end

    private

    def folder = File.join(self.class.cache, platform)

    def need_compiler
      name = "#{@triplet}-gcc"
      return if ENV.fetch("PATH").split(":").any? { |directory| File.executable?(File.join(directory, name)) }

      raise DebianArchive::Missing, "there is no #{name} on PATH; install gcc-#{@triplet.tr("_", "-")}"
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
      own = @executables.to_h { |executable| of_executable(executable) }
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

    def of_executable(path)
      script = 'puts RbConfig::CONFIG.values_at("rubyarchdir", "rubylibdir")'
      out, status = Open3.capture2({ "RUBYOPT" => nil }, path, "--disable-gems", "-rrbconfig", "-e", script)
      unless status.success?
        raise DebianArchive::Missing, "#{path} does not run; give Rubies of this machine in CULET_RUBIES"
      end

      architecture, library = out.lines(chomp: true)
      adapt(File.join(architecture, "rbconfig.rb"), File.join(library, "mkmf.rb"))
    end

    # rake-compiler wants mkmf.rb in the folder above. A library that a Ruby was linked with may need a newer C library
    # than the one here.
    def adapt(original, mkmf)
      version = Gem::Version.new(version_of(original)).to_s
      place = File.join(home, version, "arch/rbconfig.rb")
      FileUtils.mkdir_p(File.dirname(place))
      File.write(place, <<~RUBY)
        require #{original.dump}
        { "CC" => #{compiler.dump}, "LDSHARED" => #{"#{compiler} -shared".dump}, "AR" => #{"#{@triplet}-ar".dump},
          "LDFLAGS" => "-L. -Wl,--allow-shlib-undefined", "DLDFLAGS" => "-Wl,-z,relro -Wl,-z,now",
          "optflags" => "-O2", "debugflags" => "", "CFLAGS" => "-O2 -fPIC -fstack-protector-strong" }.each do |name, value|
          RbConfig::CONFIG[name] = RbConfig::MAKEFILE_CONFIG[name] = value
        end
      RUBY
      FileUtils.cp(mkmf, File.join(home, version, "mkmf.rb"))
      [version, place]
    end

    def version_of(rbconfig)
      text = File.read(rbconfig)
      %w[MAJOR MINOR TEENY].map { |name| text[/CONFIG\["#{name}"\] = "(\d+)"/, 1] }.join(".")
    end
  end
end
