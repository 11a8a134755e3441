# frozen_string_literal: true

# Makes the pages and pictures that docs/site/examples.md shows, by the commands that it shows.
#
#   ruby docs/site/examples.rb FOLDER

require "fileutils"

# The shell blocks of a document, run in a folder of their own.
class Examples
  ROOT = File.expand_path("../..", __dir__)
  DOCUMENT = File.join(__dir__, "examples.md")
  # Everything together; a busy machine takes a minute or two.
  PATIENCE_SECONDS = 900
  # Settings of the user's that would change what the pages show.
  NEUTRAL = %w[LD_PRELOAD RUBYOPT MALLOC_ARENA_MAX MALLOC_CONF GLIBC_TUNABLES CULET_PROFILE]
            .to_h { |name| [name, nil] }.freeze
  private_constant :PATIENCE_SECONDS, :NEUTRAL

  # @return [Array<String>] names of the pages and pictures
  def self.names = File.read(DOCUMENT, encoding: Encoding::UTF_8).scan(/^<!-- (?:page|picture): (\S+) /).flatten

  # @return [Array<String>] shell commands
  def self.blocks = File.read(DOCUMENT, encoding: Encoding::UTF_8).scan(/^```sh\n(.*?)^```$/m).flatten

  # @param folder [String] for these; what it had is replaced once all are made
  # @return [void]
  # @raise [RuntimeError] when a command fails or one of them is missing
  def make(folder)
    work = "#{folder}.part"
    FileUtils.rm_rf(work)
    FileUtils.mkdir_p(work)
    File.symlink(File.join(ROOT, "docs"), File.join(work, "docs"))
    blocks.each { |block| run(block, work) }
    missing = self.class.names.reject { |name| File.size?(File.join(work, name)) }
    raise "docs/site/examples.md shows #{missing.join(", ")}, which its commands do not write" if missing.any?

    replace(folder, work)
  end

  # @return [Array<String>] shell commands
  def blocks = self.class.blocks

  private

  def run(block, work)
    log = File.join(work, "log")
    env = NEUTRAL.merge("PATH" => "#{ROOT}/bin:#{ENV.fetch("PATH")}", "NO_COLOR" => "1")
    pid = spawn(env, "timeout", "-k", "5", PATIENCE_SECONDS.to_s, "sh", "-e", "-c", block,
                chdir: work, in: File::NULL, out: log, err: %i[child out], pgroup: true)
    _, status = Process.wait2(pid)
    return if status.success?

    end_group(pid)
    raise "this command of docs/site/examples.md failed (#{status.exitstatus || status}):\n#{block}#{File.read(log)}"
  end

  def end_group(pid)
    Process.kill(:KILL, -pid)
  rescue Errno::ESRCH
    nil # everything has ended
  end

  def replace(folder, work)
    FileUtils.rm_rf(folder)
    FileUtils.mkdir_p(folder)
    self.class.names.each { |name| FileUtils.mv(File.join(work, name), File.join(folder, name)) }
    FileUtils.rm_rf(work)
  end
end

if $PROGRAM_NAME == __FILE__
  begin
    Examples.new.make(File.expand_path(ARGV.fetch(0)))
  rescue RuntimeError => e
    abort e.message
  end
end
