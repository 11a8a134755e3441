# frozen_string_literal: true

require_relative "target_helper"
require_relative "../roots/in_tests"

# Processes in namespaces of their own, as in containers: from outside, from inside, and over the border.
class ScopeContainerTest < Minitest::Test
  include TargetHelper
  include Roots::InTests

  # Numbers, mounts and users of its own; the program is its process 1.
  CONTAINER = %w[unshare --user --map-root-user --pid --mount --mount-proc --fork --kill-child].freeze
  # No slot of any Ruby holds so long a string.
  SCRIPT = "X = Array.new(20_000) { |i| 'x' * (#{LONG_STRING_BYTES} + (i % 900)) }; puts X.sum(&:size), :end; $stdout.flush; sleep".freeze
  NOBODY = %w[setpriv --reuid 65534 --regid 65534 --clear-groups].freeze

  def setup
    super
    out, status = Open3.capture2e(*CONTAINER, "true")
    skip "this machine lets nobody make such namespaces: #{out.strip}" unless status.success?
  end

  def test_from_outside
    with_container(RbConfig.ruby, "-e", SCRIPT) { |pid, bytes| assert_whole_report(pid, bytes) }
  end

  # Numbers are those that are valid where it is asked.
  def test_from_inside
    script = <<~'RUBY'
      reader, writer = IO.pipe
      pid = spawn(RbConfig.ruby, "-e", ARGV.shift, out: writer)
      nil until reader.gets == "end\n"
      ok = system(*ARGV, pid.to_s, "--json")
      Process.kill(:KILL, pid)
      exit(ok)
    RUBY
    out, = assert_success(*CONTAINER, RbConfig.ruby, "-rrbconfig", "-e", script, SCRIPT, *culet_command, "report", env: NEUTRAL)
    report = JSON.parse(out)
    assert_operator report.fetch("pid"), :<, 10
    assert_equal %w[glibc blocks], report.values_at("allocator", "allocator_level")
    assert_equal report.fetch("rss_bytes"), report.fetch("levels").values.sum
  end

  # Who made a container may look into it.
  def test_of_a_plain_user
    skip "only root can become another user" unless Process.euid.zero?
    _, status = Open3.capture2e(*NOBODY, *CONTAINER, "true")
    skip "this machine lets plain users make no such namespaces" unless status.success?

    with_container(RbConfig.ruby, "-e", SCRIPT, user: NOBODY) do |pid, bytes|
      out, = assert_success(*NOBODY, *culet_command, "map", pid, "--json", env: NEUTRAL.merge("HOME" => "/"), chdir: "/")
      assert_operator JSON.parse(out).fetch("used_bytes"), :>, bytes
    end
  end

  # From inside, with the numbers of outside: what is the host's stays the host's, though both say they are root.
  def test_over_the_border
    skip "only root has processes that may more" unless Process.euid.zero?

    with_talker(RbConfig.ruby, "-e", SCRIPT) do |pid, _, _|
      out, err, status = run_program("unshare", "--user", "--map-root-user", *culet_command, "report", pid, env: NEUTRAL)
      assert_equal [1, ""], [status.exitstatus, out], err
      assert_match(/\Aculet: this container does not let root read process #{pid}; .*run this on the host\n\z/, err)
    end
  end

  # As root of a container without SYS_PTRACE is: where the kernel shows the pages all the same, they are told, and why no
  # more; else there is the sentence alone.
  def test_root_without_the_capability
    skip "only root has what can be taken" unless Process.euid.zero?

    with_talker(RbConfig.ruby, "-e", SCRIPT) do |pid, _, _|
      in_directory do |directory|
        without = ["setpriv", "--bounding-set", "-sys_ptrace", *culet_command]
        out, err, status = run_program(*without, "report", pid, "--json", env: NEUTRAL)
        unless status.success?
          assert_match(/\Aculet: this container does not let root read process #{pid}; start it with --cap-add SYS_PTRACE/, err)
          next
        end
        report = JSON.parse(out)
        assert_equal ["unknown", "pages", 0], report.values_at("allocator", "allocator_level", "unexplained_bytes")
        assert_equal [rss_bytes(pid)] * 2, [report.fetch("rss_bytes"), report.fetch("levels").values.sum]
        assert_match(/\AOnly pages can be reported, not blocks: this container does not let root read process #{pid}/, report.fetch("problems").join)
        assert_success(*without, "map", pid, "--png", "#{directory}/map.png", env: NEUTRAL)
        assert_operator File.size("#{directory}/map.png"), :>, 1000
      end
    end
  end

  # A file system in layers, as containers have, whose files are called as ours.
  def test_a_file_system_in_layers
    skip "only root can mount" unless Process.euid.zero?

    directory = new_folder
    enter = 'mount -t tmpfs none "$1"; cd "$1"; shift; mkdir upper work root; ' \
            "mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work none root; cd root; mount -t proc proc proc; " \
            'mkdir -p mnt/old; pivot_root . mnt/old; exec chroot . "$@"'
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", enter, "sh", directory]
    out, status = Open3.capture2e(*words, "true")
    skip "this machine cannot mount layers: #{out.strip}" unless status.success?

    with_talker(*words, RbConfig.ruby, "-e", SCRIPT, env: on("jemalloc")) do |pid, _, _|
      assert_equal ["jemalloc", File.realpath(Culet::Allocators.parse("jemalloc").library)], read(pid).allocator.to_h.values_at("name", "library")
    end
    with_talker(*words, RbConfig.ruby, "-e", SCRIPT) { |pid, lines, _| assert_whole_report(pid, lines.first.to_i) }
  end

  # Libraries that are called as ours, and are others.
  def test_other_files_of_the_same_names
    root = root("trixie")
    enter = 'mount --bind "$1" "$1"; cd "$1"; shift; mount -t proc proc proc; pivot_root . mnt; exec chroot . env -i "$@"'
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", enter, "sh", root.path]
    with_talker(*words, root.rubies.first, "-e", SCRIPT) do |pid, lines, _|
      assert_equal File.readlink("/proc/#{pid}/exe"), root.rubies.first
      assert_whole_report(pid, lines.first.to_i)
      assert_equal root.rubies.first[/[0-9.]+\z/], read(pid).ruby.version[/\A\d+\.\d+/]
    end
  end

  private

  # @param user [Array<String>] words that make the container somebody else's
  # @yieldparam pid [Integer] the program's number outside
  # @yieldparam bytes [Integer] what its strings hold
  def with_container(*command, user: [])
    with_talker(*user, *CONTAINER, *command) do |pid, lines, _|
      child = Dir["/proc/[0-9]*/stat"].map { |file| stat(file) }.find { |words| words && words[1].to_i == pid }
      assert child, "the container has no process"
      yield child[0].to_i, lines.first.to_i
    end
  end

  # @return [Array<String>, nil] numbers of a process and its parent; nil when it has ended
  def stat(file)
    text = File.read(file)
    [text[/\A\d+/], text[/\) \S (\d+)/, 1]]
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  # Its memory is told block by block, and the levels are all of it.
  def assert_whole_report(pid, bytes)
    report = json("report", pid)
    assert_equal %w[glibc blocks], report.values_at("allocator", "allocator_level")
    assert_equal [[], 0], report.values_at("problems", "unexplained_bytes")
    assert_equal report.fetch("rss_bytes"), report.fetch("levels").values.sum
    assert_equal rss_bytes(pid), report.fetch("rss_bytes")
    # Newer Rubies have the shorter strings in slots.
    assert_operator report.fetch("malloc").fetch("used_bytes") + report.fetch("ruby").fetch("live_bytes"), :>, bytes
    assert_operator report.fetch("ruby").fetch("pages"), :>, 10
  end
end
