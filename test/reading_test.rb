# frozen_string_literal: true

require "reading_helper"
require "json"
require "culet/metrics"
require "culet/tools/autopsy"

# One reading of a process and of its control group, whoever asks: the limit, the black box, the metrics, and the
# command line from outside.
class ReadingTest < Minitest::Test
  include TestHelper
  include ReadingHelper

  MEGABYTE = 1_000_000
  # Most of what is charged is page cache, which the kernel reclaims before it kills.
  CACHED = { charged: 950 * MEGABYTE, limit: 1000 * MEGABYTE, inactive: 500 * MEGABYTE, active: 250 * MEGABYTE, mapped: 90 * MEGABYTE,
             slab: 40 * MEGABYTE }.freeze
  USED = (950 - 500 - (250 - 90) - 40) * MEGABYTE
  # What the limit's thread and the black box's thread find, in a program of their own.
  PROGRAM = <<~RUBY
    require "json"
    require "culet/limit"
    require "culet/blackbox"
    root, box = ARGV
    group = Culet::MemoryGroup.tightest(root: root).first
    opened = [group.usage_file, group.stat_file].map { |path| File.open(path) }
    problem = Culet::Limit.send(:watch, group.limit_bytes, :group, *opened.map(&:fileno), Culet::Limit.send(:event_descriptor))
    abort problem if problem
    files = Culet::MemoryGroup.files(root: root)
    file = File.open(box, File::RDWR | File::CREAT)
    Culet::BlackBox.send(:map, file.fileno, Culet::BlackBox::Head.text(files), files, 0)
    Thread.pass until Culet::BlackBox.stats[:readings].positive?
    Culet::BlackBox.send(:close)
    puts JSON.generate([Culet::Limit.send(:used), group.used_bytes])
  RUBY

  [1, 2].each do |version|
    define_method("test_all_readers_find_one_use_of_a_group_of_version_#{version}") do
      with_reading_root(version: version, **CACHED) do |root|
        box = File.join(root, "box")
        of_limit, of_ruby = run_readers(root, box)
        reading = read(root)
        last = Culet::Autopsy::Box.load(box).readings.last
        assert_equal [USED] * 4, [of_limit, of_ruby, last.group_used_bytes, reading["group_used_bytes"]]
        assert_equal [[950 * MEGABYTE, 700 * MEGABYTE, 1000 * MEGABYTE, 3]] * 2,
                     [last.to_h.values_at(:group_charged_bytes, :group_reclaimable_bytes, :group_limit_bytes, :group_kills),
                      reading.values_at("group_charged_bytes", "group_reclaimable_bytes", "group_limit_bytes", "group_kills")]
      end
    end
  end

  def test_without_statistics_all_that_is_charged_is_used
    with_reading_root(version: 2, charged: 7 * MEGABYTE, limit: 9 * MEGABYTE) do |root|
      File.unlink("#{root}/sys/fs/cgroup/app/memory.stat")
      assert_equal 7 * MEGABYTE, read(root)["group_used_bytes"]
      assert_equal 7 * MEGABYTE, Culet::MemoryGroup.tightest(root: root).first.used_bytes
    end
  end

  def test_the_files_of_a_process
    with_reading_root(version: 2, **CACHED) do |root|
      reading = read(root)
      rollup = File.read("#{root}/proc/self/smaps_rollup")
      resident, shared = File.read("#{root}/proc/self/statm").split[1, 2].map { |pages| pages.to_i * Etc.sysconf(Etc::SC_PAGESIZE) }
      assert_equal [resident, shared], reading.values_at("resident_bytes", "shared_bytes")
      assert_equal rollup[/^Pss:\s+(\d+)/, 1].to_i * 1024, reading["pss_bytes"]
      assert_equal rollup[/^Private_Dirty:\s+(\d+)/, 1].to_i * 1024, reading["private_dirty_bytes"]
    end
  end

  def test_the_levels_of_the_metrics_add_up_to_it
    with_reading_root(version: 2, **CACHED) do |root|
      samples = Culet::Metrics::OwnReading.new(root: root).samples
      levels = samples.filter_map { |name, labels, bytes| [labels["level"], bytes] if name == "culet_memory_level_bytes" }.to_h
      assert_equal read(root).values_at("resident_bytes", "shared_bytes"), [levels.values.sum, levels["libraries_and_files"]]
    end
  end

  # One that waits for a processor, as here for a tenth of a second, costs no more than another.
  COUNTS = <<~RUBY.freeze
    require "culet/metrics"
    class << Culet
      alias_method :quick, :malloc_totals
      def malloc_totals = [sleep(0.1), quick].last
    end
    reading = Culet::Metrics::OwnReading.new
    used = -> { reading.samples.find { |name, labels,| name == "culet_malloc_memory_bytes" && labels["state"] == "used" }.last }
    before = used.call
    kept = Array.new(2_000) { "x" * 10_000 }
    patience = Process.clock_gettime(Process::CLOCK_MONOTONIC) + #{PATIENCE_SECONDS / 2}
    sleep 0.05 until used.call > before + 15_000_000 || Process.clock_gettime(Process::CLOCK_MONOTONIC) > patience
    p used.call > before + 15_000_000, kept.size
  RUBY

  def test_the_metrics_count_blocks_again_whatever_a_count_waited_for
    out, err, = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-e", COUNTS, env: NEUTRAL)
    assert_equal "true\n2000\n", out, err
  end

  def test_what_cannot_be_read_is_missing
    root = new_folder
    assert_empty Culet::Reading.read(root, [nil, "#{root}/none", nil, root]).keys.grep_v(/_time\z/)
    File.write("#{root}/statm", "-5 x")
    File.write("#{root}/smaps_rollup", "Pss:\nPss_Dirty: 7 kB\n")
    assert_empty Culet::Reading.read(root, Array.new(4, "#{root}/statm")).keys.grep_v(/_time\z/)
  end

  # What is left of it after a cut would be the path of another file.
  def test_a_path_that_is_too_long_is_that_of_no_file
    root = new_folder
    folder = File.join(root, "a" * 200, "b" * 200)
    FileUtils.mkdir_p(folder)
    path = File.join(folder, "c" * (510 - folder.bytesize))
    File.write(path, "5")
    assert_equal 5, Culet::Reading.read(root, [path, nil, nil, nil])["group_charged_bytes"]
    assert_nil Culet::Reading.read(root, ["#{path}d", nil, nil, nil])["group_charged_bytes"]
  end

  # A record of the black box has the members in this order.
  def test_the_names_are_those_of_a_record
    assert_equal Culet::Reading::FIELDS.uniq, Culet::Reading::FIELDS
    assert_equal Culet::Reading::FIELDS.first(Culet::Autopsy::Box::FIGURES.size), Culet::Autopsy::Box::FIGURES.map(&:to_s)
  end

  private

  def read(root) = Culet::Reading.read("#{root}/proc/self", Culet::MemoryGroup.files(root: root))

  # @return [Array(Integer, Integer)] used bytes of the limit, and of the command line's reader
  def run_readers(root, box)
    out, = assert_success(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", PROGRAM, root, box, env: { "CULET_LIMIT" => "off", "CULET_BLACKBOX" => nil })
    JSON.parse(out)
  end
end
