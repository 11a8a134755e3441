# frozen_string_literal: true

require_relative "box_helper"
require "culet/system/memory_group"
require "limit/limit_helper"

# What ended a process: the kernel's log, the signal, the counts and the figures, each alone and in their order.
class AutopsyCauseTest < Minitest::Test
  include TestHelper
  include LimitHelper

  Autopsy = Culet::Autopsy
  BOOTED = Time.at(1_700_000_000)
  MEMCG = "6,1,%<at>d,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/pod,task_memcg=/pod/app,task=ruby,pid=42,uid=0\n"
  KILLED = "3,2,%<at>d,-;Memory cgroup out of memory: Killed process 42 (ruby) total-vm:274692kB, anon-rss:97568kB, file-rss:6588kB, shmem-rss:0kB, " \
           "UID:0 pgtables:416kB oom_score_adj:0\n"
  GLOBAL = ["6,3,%<at>d,-;oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/app,task=puma: x,pid=43,uid=7\n",
            "3,4,%<at>d,-;Out of memory: Killed process 43 (puma: x) total-vm:1kB, anon-rss:3kB, file-rss:2kB, shmem-rss:1kB, UID:7 pgtables:4kB\n"].freeze
  OLD = "3,5,%<at>d,-;Killed process 44 (ruby) total-vm:274692kB, anon-rss:10kB, file-rss:0kB, shmem-rss:0kB\n"

  COUNTS = "low 0\nhigh 0\nmax 9\noom 2\noom_kill 2\noom_group_kill 0\n"

  # What the box of the process says.
  Box = Struct.new(:pid, :started_at, :readings, :witness, :ending, :head, :notes, keyword_init: true) do
    def [](name) = (head || {})[name]
  end

  def log(*records, at: 60)
    Autopsy::KernelLog.new(records.flatten.map { |one| one.include?("%<at>d") ? format(one, at: at * 1_000_000) : one }, booted_at: BOOTED)
  end

  def cause(used: 500, limit: 1000, kills: 0, witness: nil, ending: nil, head: nil, records: [], notes: [], alive: false, root: "/")
    last = Autopsy::Box::Reading.new(group_charged_bytes: used, group_limit_bytes: limit, group_kills: kills)
    box = Box.new(pid: 42, started_at: BOOTED + 50, readings: [last], witness: witness, ending: ending, head: head, notes: notes)
    Autopsy::Cause.new(box, alive: alive, log: records.is_a?(Array) ? log(*records) : records, count: Autopsy::Kills.new(root: root))
  end

  # @yieldparam root [String] a folder with a /proc of its own
  # @yieldparam mount [String] its control groups: the group a/b has counts
  def in_groups
    Dir.mktmpdir do |root|
      mount = File.join(root, "groups")
      FileUtils.mkdir_p([File.join(root, "proc/self"), File.join(mount, "a/b")])
      File.write(File.join(root, "proc/self/mountinfo"), "30 20 0:26 / /groups rw - cgroup2 cgroup2 rw\n")
      File.write(File.join(mount, "a/b/memory.events"), COUNTS)
      yield root, mount
    end
  end

  def assert_cause(kind, certain, text, **options)
    found = cause(**options)
    assert_equal [kind, certain], [found.kind, found.certain], found.text
    assert_includes found.text, text
  end

  def test_the_log_is_read
    kills = log(MEMCG, KILLED, GLOBAL, OLD, "6,9,1,-;usb 1-1: Killed process\n", "damaged", "\xff,;").kills
    assert_equal [[42, "ruby", "/pod", "/pod/app", (97_568 + 6588) << 10], [43, "puma: x", nil, "/app", 6 << 10], [44, "ruby", nil, nil, 10 << 10]],
                 kills.map { |kill| kill.to_a.drop(1) }
    assert_equal [BOOTED + 60] * 3, kills.map(&:at)
  end

  def test_the_log_comes_first
    assert_cause("kernel", true, "at the limit of its control group (kernel log); it held 107 MB", records: [MEMCG, KILLED], witness: { "signal" => "9" })
    machine = [GLOBAL.first.sub("pid=43", "pid=42"), GLOBAL.last.sub("43", "42")]
    assert_cause("kernel", true, "because the machine had no memory left", records: machine)
  end

  def test_a_kill_of_an_earlier_process_with_this_number_is_not_its_own
    assert_equal "unknown", cause(records: log(MEMCG, KILLED, at: 10)).kind
  end

  def test_signals
    assert_cause("kernel", true, "SIGKILL, and the kernel's count of kills in the group rose by 1", kills: 3, witness: { "signal" => "9", "kills" => "4" })
    assert_cause("signal", true, "not by the kernel", kills: 3, witness: { "signal" => "9", "kills" => "3" })
    assert_cause("unknown", false, "probably not by the kernel", witness: { "signal" => "9" })
    assert_cause("signal", true, "was ended by SIGSEGV: it crashed", witness: { "signal" => "11" })
    assert_cause("exit", true, "ended by itself", witness: { "signal" => "0" })
  end

  def test_counts_and_figures
    assert_cause("kernel", false, "has killed 2 processes since", kills: 1, witness: { "kills" => "3" })
    assert_cause("unknown", false, "it has killed no process", kills: 1, witness: { "kills" => "1" })
    assert_cause("unknown", false, "probably killed by the kernel, because the last figures were at 96 % of the limit", used: 960)
    assert_cause("unknown", false, "cannot be known; the last figures were at 80 % of the limit", used: 800)
    assert_cause("unknown", false, "no limit was seen", limit: 9_223_372_036_854_771_712)
    assert_cause("unknown", false, "no limit was seen", limit: nil, used: nil, kills: nil)
    own = Autopsy::Box::Note.new(BOOTED, "limit", "setting", 400 << 20)
    assert_cause("unknown", false, "no limit of the kernel was seen, only culet's own of 400 MiB (setting)", limit: nil, used: nil, kills: nil, notes: [own])
  end

  def test_the_count_of_the_group_is_read_if_it_is_there
    in_groups do |root, mount|
      events = File.join(mount, "a/b", "memory.events")
      assert_equal 1, cause(kills: 1, head: { "group_kills" => events }, root: root).kills
      assert_nil cause(kills: 1, head: { "group_kills" => events, "boot" => "of another machine" }, root: root).kills
      assert_nil cause(kills: 5, head: { "group_kills" => events }, root: root).kills
      assert_nil cause(kills: 1, head: { "group_kills" => events }).kills
    end
  end

  # The name stands in the box, which anyone may have written.
  # As `culet limit` counts: 950 of 1,000 are charged, and the kernel can take back 700 of them.
  def test_the_report_of_the_kernel_counts_as_the_limit_does
    files = { "memory.max" => "1000", "memory.current" => "950", "memory.stat" => "inactive_file 700\n", "memory.events" => COUNTS }
    with_unified_groups("/a", "/a" => files) do |root|
      report = Autopsy::KernelReport.new(log, root: root)
      assert_equal [250, 1000], report.to_h["group"].values_at("used_bytes", "limit_bytes")
      assert_match(/: 250 bytes used of 1\.00 kB/, report.to_s.tr("\n", " "))
    end
    with_unified_groups("/a", "/a" => {}) do |root|
      report = Autopsy::KernelReport.new(log, root: root)
      assert_equal({ "file" => nil, "counts" => {}, "used_bytes" => nil, "limit_bytes" => nil }, report.to_h["group"])
      assert_includes report.to_s, "in no control group that counts memory"
    end
  end

  def test_only_groups_that_the_kernel_lists_are_read
    in_groups do |root, mount|
      File.write(File.join(root, "memory.events"), COUNTS)
      Dir.mkdir(File.join(mount, "pipe"))
      File.mkfifo(File.join(mount, "pipe/memory.events"))
      File.symlink(File.join(mount, "a"), File.join(mount, "link"))
      Dir.mkdir(File.join(mount, "linked"))
      File.symlink("/dev/zero", File.join(mount, "linked/memory.events"))
      ["../memory.events", "#{root}/memory.events", "#{mount}/../memory.events", "#{mount}/a/../a/b/memory.events", "#{mount}/a/./b/memory.events",
       "#{mount}/link/b/memory.events", "#{mount}/pipe/memory.events", "#{mount}/linked/memory.events", "#{mount}/a/b/memory.stat", "#{mount}/a/b/",
       mount, "#{mount}//memory.events", "/dev/zero", "x" * 5000, ""].each do |path|
        assert_nil cause(kills: 1, head: { "group_kills" => path }, root: root).kills, path
      end
    end
  end

  def test_other_ends
    assert_cause("alive", true, "is alive", alive: true, records: [MEMCG, KILLED])
    assert_cause("error", true, "ended by itself: NoMemoryError: failed", ending: "error NoMemoryError: failed")
  end
end

# Where the files of the tightest limit are, in trees of both versions.
class AutopsyControlGroupTest < Minitest::Test
  include TestHelper

  NAMES = { 2 => %w[memory.current memory.max memory.stat memory.events],
            1 => %w[memory.usage_in_bytes memory.limit_in_bytes memory.stat memory.oom_control] }.freeze

  def setup = @root = new_folder

  def test_the_tightest_ancestor_in_version2
    tree(2, "a" => "max", "a/b" => "1000", "a/b/c" => "2000", "a/b/c/d" => "max")
    assert_equal paths(2, "a/b").tap { |list| list[3] = paths(2, "a/b/c/d")[3] }, find(2, "0::/a/b/c/d\n")
  end

  def test_version_1_in_a_container
    tree(1, "" => "500", "x" => "9223372036854771712")
    assert_equal paths(1, ""), find(1, "4:memory:/docker/0123\n2:cpu:/\n", root: "/docker/0123")
    assert_equal paths(1, "").tap { |list| list[3] = paths(1, "x")[3] }, find(1, "4:memory:/docker/0123/x\n", root: "/docker/0123")
    assert_equal paths(1, ""), find(1, "5:cpu,memory:/of/the/host\n", root: "/docker/0123")
  end

  def test_without_a_limit_its_own_group
    tree(2, "a" => "max", "a/b" => "max")
    assert_equal paths(2, "a/b"), find(2, "0::/a/b\n")
  end

  def test_no_group_that_counts_memory
    [[2, ""], [2, "3:cpu:/\n"], [2, "damaged"], [1, "0::/\n"], [2, "0::/../..\n"]].each { |version, groups| assert_equal [nil] * 4, find(version, groups) }
    assert_equal [nil] * 4, Culet::MemoryGroup.files(root: File.join(@root, "none"))
  end

  private

  def mount = File.join(@root, "a mount")

  def tree(version, limits)
    limits.each do |group, limit|
      FileUtils.mkdir_p(File.join(mount, group))
      NAMES.fetch(version).each { |name| File.write(File.join(mount, group, name), name.match?(/max|limit/) ? "#{limit}\n" : "0\n") }
    end
  end

  def paths(version, group) = NAMES.fetch(version).map { |name| File.join(mount, *[group].reject(&:empty?), name) }

  # @return [Array<String, nil>] what is found by a /proc of this tree
  def find(version, groups, root: "/")
    proc = File.join(@root, "proc/self")
    FileUtils.mkdir_p(proc)
    kind = version == 2 ? "cgroup2 cgroup2 rw" : "cgroup cgroup rw,memory"
    File.write(File.join(proc, "mountinfo"), "20 1 0:5 / / rw - ext4 /dev/x rw\n30 20 0:26 #{root} /a\\040mount rw,nosuid shared:9 - #{kind}\n")
    File.write(File.join(proc, "cgroup"), groups)
    Culet::MemoryGroup.files(root: @root)
  end
end
