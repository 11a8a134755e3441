# frozen_string_literal: true

require "test_helper"
require "autopsy/box_helper"
require "autopsy/cgroup_helper"
require "culet/metrics"
require "culet/model/limit/inquiry"
require "culet/model/sampler"
require "culet/scope"
require "culet/tools/report"

# The files of one process in /proc and of its control group, copied to a folder: whoever shows what the process uses
# has the same figures from them. The live page shows the moments of top, an autopsy the black box.
class SameFiguresTest < Minitest::Test
  include TestHelper
  include BoxHelper
  include CgroupHelper

  # A process at rest. For each line it prints the metrics that it has of itself, given the folder.
  PROGRAM = <<~RUBY.freeze
    kept = Array.new(20_000) { |i| "x" * (#{LONG_STRING_BYTES} + (i % 900)) }.each_slice(3).map(&:first)
    4.times { GC.start }
    GC.disable
    own = Culet::Metrics::OwnReading.new(root: ARGV[0])
    own.samples
    $stdout.sync = true
    puts :up
    puts Marshal.dump([own.samples, Culet::Metrics::Group.samples]).unpack1("H*") while $stdin.gets
  RUBY
  OF_PROCESS = %w[stat statm status smaps_rollup cgroup limits mountinfo].freeze
  OF_GROUP = %w[memory.limit_in_bytes memory.usage_in_bytes memory.stat memory.max memory.high memory.current].freeze
  LIMIT = 300 << 20

  def test_the_same_files_give_the_same_figures
    with_cgroup(LIMIT) do |group|
      Dir.mktmpdir do |root|
        # What the process opens before it has a number.
        FileUtils.mkdir_p("#{root}/proc/self")
        File.binwrite("#{root}/proc/self/statm", File.binread("/proc/self/statm"))
        command = [RbConfig.ruby, "--disable-gems", "-I#{LIBRARY}", "-rculet/agent", "-rculet/limit", "-rculet/metrics", "-e", PROGRAM, root]
        IO.popen([{ "CULET_BLACKBOX" => @folder, "CULET_LIMIT" => "auto" }, *in_cgroup(group, *command)], "r+") do |program|
          assert_equal "up\n", program.gets
          assert_the_same(program, group, root)
        ensure
          Process.kill(:KILL, program.pid)
        end
      end
    end
  end

  # A process that has read a file has its pages charged, and the kernel takes them back before it kills.
  def test_page_cache_is_not_in_use_for_the_doctor_either
    with_cgroup(LIMIT) do |group|
      Dir.mktmpdir(nil, "#{ROOT}/tmp") do |folder|
        code = "File.write(ARGV[0], 'x' * (100 << 20)); File.open(ARGV[0], &:fsync); puts :up; $stdout.flush; sleep"
        with_program(*in_cgroup(group, RbConfig.ruby, "--disable-gems", "-e", code, "#{folder}/file")) do |pid|
          charged = Dir.glob("#{group}/memory.{usage_in_bytes,current}").sum { |path| File.read(path).to_i }
          cached = File.read("#{group}/memory.stat")[/^(?:total_)?inactive_file (\d+)/, 1].to_i
          skip "files of #{folder} are not in the page cache" if cached < 60 << 20
          used = Culet::Limit::Inquiry.new(pid).call["used_bytes"]
          assert_operator used, :<, charged - (50 << 20)
          out, = run_culet("doctor", pid.to_s, "--json")
          found = JSON.parse(out)["findings"].find { |one| one["topic"] == "memory limit" }
          assert_in_delta used.fdiv(1 << 20), Float(found["text"][/uses ([\d.]+) MiB/, 1]), 5, found["text"]
        end
      end
    end
  end

  # The group above has the larger limit, but another process has used most of it.
  def test_the_limit_that_leaves_least_is_the_doctor_s_too
    with_cgroup(LIMIT) do |above|
      groups = %w[other inner].map { |name| File.join(above, name) }
      File.write("#{above}/cgroup.subtree_control", "+memory") if File.exist?("#{above}/cgroup.subtree_control")
      groups.each { |group| Dir.mkdir(group) }
      limit(groups.last, LIMIT - (50 << 20))
      commands = ["kept = 'x' * (200 << 20)", "kept = nil"].zip(groups).map do |code, group|
        in_cgroup(group, RbConfig.ruby, "--disable-gems", "-e", "#{code}; puts :up; $stdout.flush; sleep")
      end
      with_program(*commands.first) { with_program(*commands.last) { |pid| assert_limit(LIMIT, pid) } }
    ensure
      groups&.each { |group| remove(group) if Dir.exist?(group) }
    end
  end

  private

  def assert_limit(bytes, pid)
    assert_equal bytes, Culet::Limit::Inquiry.new(pid).call["limit_bytes"]
    out, = run_culet("doctor", pid.to_s, "--json")
    found = JSON.parse(out)["findings"].find { |one| one["topic"] == "memory limit" }
    assert_includes found["text"], "may use #{Culet::Text::Size.limit(bytes)}"
  end

  # What is read from the copied files is equal at once; counts of malloc follow within seconds.
  def assert_the_same(program, group, root)
    deadline = Time.now + PATIENCE_SECONDS
    loop do
      found = figures(program, group, root)
      %w[metrics top].each { |name| assert_equal resident(program.pid, root), [found[name][1].values.sum, found[name][1]["libraries_and_files"]], name }
      return assert_like_the_report(program.pid, found) if found.each_value.all? { |one| like?(one, found.fetch("black box")) }

      flunk "not those of the black box: #{found}" if Time.now > deadline
    end
  end

  # @return [Array(Integer, Integer)] resident bytes, and those in files
  def resident(pid, root) = Culet::Processes::Memory.statm(File.read("#{root}/proc/#{pid}/statm"))

  # @return [Hash{String => Array(Integer, Hash)}] who => used of the limit, and levels
  def figures(program, group, root)
    copy(program.pid, group, root)
    program.puts
    own, of_group = Marshal.load([program.gets.chomp].pack("H*"))
    started = Time.now
    moment = moment(program.pid, root)
    sleep 0.1 until (last = box.readings.last) && last.at > started && last.malloc_time.to_i.positive?
    limit = Culet::Limit::Inquiry.new(program.pid, root: root).call
    { "black box" => [last.group_used_bytes, last.levels], "limit" => [limit["used_bytes"], last.levels],
      "top" => [moment["limit"]["used_bytes"], moment["processes"].first["figures"]["levels"]],
      "metrics" => [of_group.to_h { |name, _, bytes| [name, bytes] }.fetch("culet_limit_used_bytes"),
                    own.select { |name,| name == "culet_memory_level_bytes" }.to_h { |_, labels, bytes| [labels["level"], bytes] }] }
  end

  # Blocks and slots are counted at times of each one's own.
  def like?(one, other)
    pairs = [[one[0], other[0]], *Culet::Levels::COUNTED.map { |level| [one[1].fetch(level), other[1].fetch(level)] }]
    pairs.all? { |bytes, expected| (bytes - expected).abs <= 0.01 * other[1].values.sum }
  end

  # The report reads the heap itself, and tells more apart.
  def assert_like_the_report(pid, found)
    report = Culet::SnapshotLevels.new(Culet::Scope::Reader.new(pid).snapshot)
    expected = report.levels.slice("ruby_objects", "malloc_used", "malloc_free", "libraries_and_files")
    found.each do |name, (_, levels)|
      expected.each { |level, bytes| assert_in_delta bytes, levels.fetch(level), 0.05 * report.rss_bytes, "#{level}, #{name}" }
    end
  end

  def moment(pid, root)
    sampler = Culet::Live::Sampler.new([pid], root: root)
    assert_settles("the agent and the limit answer") do
      sleep 0.1
      moment = sampler.call
      moment if moment["limit"] && moment["processes"].first.dig("figures", "live_slots") && (@moments = @moments.to_i + 1) > 3
    end
  ensure
    sampler&.close
  end

  def copy(pid, group, root)
    FileUtils.mkdir_p("#{root}/proc/#{pid}")
    OF_PROCESS.each { |name| File.binwrite("#{root}/proc/#{pid}/#{name}", File.binread("/proc/#{pid}/#{name}")) }
    %w[statm mountinfo cgroup].each { |name| File.binwrite("#{root}/proc/self/#{name}", File.binread("#{root}/proc/#{pid}/#{name}")) }
    [group, File.dirname(group)].product(OF_GROUP) do |folder, name|
      next unless File.file?("#{folder}/#{name}")

      FileUtils.mkdir_p(File.join(root, folder))
      File.binwrite(File.join(root, folder, name), File.binread("#{folder}/#{name}"))
    end
  end
end
