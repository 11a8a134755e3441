# frozen_string_literal: true

require "fileutils"
require "io/wait"
require "open3"
require "tmpdir"
require "culet/system/executables"
require_relative "gem_source"

# Images and containers by podman, in a folder of its own: nothing of the machine's is used or changed, and no image is
# pulled.
class Podman
  # There is no podman that can run a container here; the message says why, and is what a test skips with.
  class Missing < StandardError; end

  NEEDED = %w[podman runc].freeze
  # Isolation by chroot builds where an image's commands get no namespaces of their own.
  BUILD = %w[build --quiet --isolation chroot --pull=never --network host].freeze
  # The limits that podman sets by default are above those of some machines.
  LIMITS = %w[--ulimit nofile=1024:1024 --ulimit nproc=4096:4096].freeze
  RUN = ["run", "--network", "host", *LIMITS].freeze
  # Below the images that are published: gems come from a folder, and a frozen mirror's index may have expired.
  BASE = <<~TEXT
    ARG BASE
    FROM $BASE
    COPY gems /srv/gems
    RUN printf ':sources:\\n- file:///srv/gems\\n' >/etc/gemrc \\
        && printf 'Acquire::Check-Valid-Until "false";\\n' >/etc/apt/apt.conf.d/99any-date
  TEXT
  # A busy machine takes its time to start a program.
  SILENCE_SECONDS = 180
  private_constant :NEEDED, :BUILD, :LIMITS, :BASE, :SILENCE_SECONDS

  # @param folder [String] an empty one, for images; `close` unmounts what is in it
  # @raise [Missing]
  def initialize(folder)
    @folder = folder
    lacking = NEEDED.reject { |name| Culet::Executables.find(name) }
    raise Missing, "#{lacking.join(" and ")} not installed: no container can be run" if lacking.any?
  end

  # @param image [String] its name
  # @param root [Roots::Root] whose files it gets
  # @param gems [Array<String>] paths of the gems that `gem install` finds inside
  def import(image, root, gems)
    Dir.mktmpdir("base", @folder) do |context|
      archive = File.join(context, "root.tar")
      run("tar", "--directory", root.path, "--one-file-system", "--create", "--file", archive, ".")
      podman("import", "--quiet", archive, image)
      File.unlink(archive)
      GemSource.write(gems, File.join(context, "gems"))
      build(image, BASE, context, "--build-arg", "BASE=#{image}")
    end
  end

  # @param image [String] name that it gets
  # @param dockerfile [String] its text
  # @param context [String] folder of the files that it names
  def build(image, dockerfile, context, *options)
    file = File.join(context, "Dockerfile")
    File.write(file, dockerfile)
    podman(*BUILD, *options, "--tag", image, "--file", file, context)
  end

  # @param network [String] "none" for a loopback of its own
  # @yieldparam container [String] name of a container with this image's command, which is ended afterwards
  def with_container(image, *options, network: "host")
    container = podman("run", "--network", network, *LIMITS, "--detach", *options, image).chomp
    yield container
  ensure
    podman("rm", "--force", "--time", "0", container) if container
  end

  # @return [String] what it printed
  # @raise [RuntimeError] when it failed, with what it said
  def podman(*words) = run(*command(*words))

  # @return [Array<String>] the words of podman
  def command(*words)
    ["podman", "--root", "#{@folder}/images", "--runroot", "#{@folder}/run", "--storage-driver", "overlay", "--cgroup-manager", "cgroupfs",
     "--runtime", "runc", *words]
  end

  # @return [String] the first line that a container has written, of those that match
  # @raise [RuntimeError] when there is none, or nothing is written for minutes
  def first_line(container, pattern = //)
    IO.popen(command("logs", "--follow", container), err: %i[child out]) do |io|
      written = []
      until written.last&.match?(pattern)
        line = io.wait_readable(SILENCE_SECONDS) && io.gets
        raise "container #{container} wrote no #{pattern.inspect}:\n#{written.join}" unless line

        written << line
      end
      written.last
    ensure
      Process.kill(:TERM, io.pid)
    end
  end

  # Removes the images, and the mount that podman leaves.
  def close
    podman("rmi", "--all", "--force")
    mounted = File.foreach("/proc/self/mounts").map { |line| line.split[1] }.select { |path| path.start_with?("#{@folder}/") }
    mounted.reverse_each { |path| run("umount", path) }
  end

  private

  def run(*words)
    out, err, status = Open3.capture3(*words, stdin_data: "")
    return out if status.success?

    raise "#{words.join(" ")} ended with #{status}:\n#{(out + err).lines.last(30).join}"
  end
end
