# frozen_string_literal: true

require "digest"
require "fileutils"
require "open3"
require "tmpdir"

# One package of the npm registry, at one version and without its dependencies: programs of others that read the files
# of a profile. It is downloaded once, checked, and kept.
class NpmPackage
  # It cannot be had here; the message says why, and is what a test skips with.
  class Missing < StandardError; end

  # @param version [String]
  # @param digest [String] SHA-256 of the registry's archive
  def initialize(name, version, digest)
    @name = name
    @version = version
    @digest = digest
  end

  # @return [String] the folder with its package.json
  # @raise [Missing]
  def path
    folder = File.join(ENV.fetch("XDG_CACHE_HOME") { File.join(Dir.home, ".cache") }, "culet", "npm", "#{File.basename(@name)}-#{@version}")
    download(folder) unless File.directory?(folder)
    File.join(folder, "package")
  end

  private

  # Complete before it has its name; who comes second keeps the first one's.
  def download(folder)
    FileUtils.mkdir_p(File.dirname(folder))
    Dir.mktmpdir("new", File.dirname(folder)) do |work|
      run("npm", "pack", "--silent", "#{@name}@#{@version}", chdir: work)
      archive, = Dir.glob("#{work}/*.tgz")
      found = Digest::SHA256.file(archive).hexdigest
      raise "#{@name} #{@version} of the registry is another one: its digest is #{found}" unless found == @digest

      FileUtils.mkdir(File.join(work, "made"))
      run("tar", "xzf", archive, "-C", "made", chdir: work)
      File.rename(File.join(work, "made"), folder)
    rescue Errno::EEXIST, Errno::ENOTEMPTY
      nil
    end
  end

  def run(*command, **options)
    out, status = Open3.capture2e({ "LD_PRELOAD" => nil, "RUBYOPT" => nil }, *command, **options)
    raise Missing, "#{@name} could not be downloaded: #{out.lines.grep(/\S/).last(2).join(" ").strip}" unless status.success?
  rescue Errno::ENOENT
    raise Missing, "there is no #{command.first}; install it with `apt-get install npm`"
  end
end
