# frozen_string_literal: true

require "test_helper"
require "culet/system/processes"

class ProcessesTest < Minitest::Test
  include Culet

  def test_memory_of_a_process_is_what_the_kernel_says
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      rss = Processes::Memory.rss_bytes(pid)
      rollup, pss = rollup_and_pss(pid)
      assert_in_delta rollup["rss_bytes"], rss, 2 << 20
      assert_equal rollup["pss_bytes"], pss
      assert_operator rollup["pss_bytes"], :<=, rollup["rss_bytes"]
      assert_operator Processes::Memory.peak_rss_bytes(pid), :>=, rollup["private_dirty_bytes"]
    end
  end

  def test_memory_taken_shows
    with_program(RbConfig.ruby, "-e", "x = 'x' * (64 << 20); #{WAITING}") do |pid|
      assert_operator Processes::Memory.rss_bytes(pid), :>, 64 << 20
      assert_operator Processes::Memory.pss_bytes(pid), :>, 64 << 20
    end
  end

  def test_whether_a_process_trims_is_seen
    { "background" => "background", "now" => "now", "off" => nil }.each do |given, mode|
      with_program(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-rculet/auto", "-e", WAITING, env: NEUTRAL.merge("CULET_TRIM" => given)) do |pid|
        found = Processes::Marks.trimming_in(Processes::Live.new(pid).read("maps"))
        mode ? assert_equal(mode, found) : assert_nil(found)
      end
    end
  end

  def test_a_black_box_is_found_beside_a_file_whose_name_is_not_utf8
    folder = new_folder
    names = ["\xFF".b, "culet-1-ab.blackbox"].map { |name| "#{folder}/".b + name }
    names.each { |name| FileUtils.touch(name) }
    with_program(RbConfig.ruby, "--disable-gems", "-e", "files = ARGV.map { |name| File.open(name) }; #{WAITING}", *names, env: NEUTRAL.merge("LC_ALL" => "C.UTF-8")) do |pid|
      link = Processes::Marks.black_box(pid)
      assert_equal names.last.force_encoding("UTF-8"), File.readlink(link)
    end
  end

  def test_the_copy_of_an_agent_is_no_program_of_that_name
    with_program(RbConfig.ruby, "-e", "$0 = 'copied program'; File.write('/proc/self/comm', 'culet-retain'); #{WAITING}") do |pid|
      assert_raises(Processes::Search::Absent) { Processes::Search.new("copied").families }
      refute_includes Processes::Search.ruby_roots, pid
    end
  end

  def test_a_process_that_has_ended_has_no_figures
    pid = spawn("true")
    Process.wait(pid)
    assert_nil Processes::Memory.rss_bytes(pid)
    assert_nil Processes::Memory.pss_bytes(pid)
    assert_nil Processes::Memory.peak_rss_bytes(pid)
    assert_nil Processes::Cpu.seconds(pid)
    assert_nil Processes::Cpu.exact_seconds(pid)
    assert_nil Processes::Cpu.start_ticks(pid)
    assert_empty Processes::Tree.new(pid).pids
  end

  def test_cpu_seconds_count_the_process_and_the_children_it_waited_for
    script = "pid = fork { t = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID); " \
             "nil until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - t > 0.3 }; Process.wait(pid); #{WAITING}"
    with_program(RbConfig.ruby, "-e", script) do |pid|
      assert_operator Processes::Cpu.seconds(pid), :>=, 0.3
      assert_in_delta Processes::Cpu.seconds(pid), Processes::Cpu.exact_seconds(pid), 0.05
    end
  end

  def test_a_command_with_parentheses_in_its_name_is_read_right
    directory = new_folder
    program = File.join(directory, "a) R (b 1 2")
    FileUtils.cp("/bin/sleep", program)
    pid = spawn(program, "60")
    begin
      assert_equal Process.pid, Processes::Cpu.parent(pid)
      assert_operator Processes::Cpu.start_ticks(pid), :>, 0
    ensure
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  # Fields of proc(5), which are counted from 1 and begin with the number and the command.
  def test_a_stat_is_what_the_kernel_says_whatever_the_command
    ["ruby", "a) S 1 (2", "\xC3\xA9) R 7", "\xFF\xFE)"].each do |name|
      file = nil
      with_program(RbConfig.ruby, "-e", "File.binwrite('/proc/self/comm', [#{name.unpack1("H*").dump}].pack('H*')); #{WAITING}") do |pid|
        Process.kill(:STOP, pid)
        sleep 0.01 until Processes::Cpu.state(pid) == "T"
        file = Processes::Stat.new(pid)
        reading = file.read
        text = File.binread("/proc/#{pid}/stat")
        assert_includes text, " (#{name.b}) T "
        fields = text.byteslice(text.rindex(")")..).split.drop(1)
        assert_equal [fields[0], *fields.values_at(1, 7, 17, 19, 20).map(&:to_i), fields[11].to_i + fields[12].to_i,
                      *File.read("/proc/#{pid}/statm").split[1, 2].map { |pages| pages.to_i * Processes::Memory::PAGE_BYTES }],
                     reading.to_h.values_at(:state, :parent_pid, :faults, :threads, :start_ticks, :virtual_bytes, :ticks, :resident_bytes, :file_bytes)
        assert_equal Process.pid, reading.parent_pid
        assert_same reading, file.read
      end
      2.times { assert_nil file.read }
    ensure
      file&.close
    end
  end

  def test_rollups_are_read_in_the_order_that_is_wanted
    rollups = Processes::Rollups.new
    pids = Array.new(3) { spawn("sleep", "1000") }
    starts = pids.to_h { |pid| [pid, Processes::Cpu.start_ticks(pid)] }
    first = rollups.call(starts, seconds: 0).dup
    assert_equal pids, first.keys
    assert_equal first, rollups.call(starts, seconds: 0) { 1 }
    second = rollups.call(starts, seconds: 1e-9) { |pid| pids.index(pid) }.dup
    assert_equal pids.last(1), pids.reject { |pid| second[pid].equal?(first[pid]) }
    assert_operator rollups.spent, :>, 0
    third = rollups.call(starts, seconds: 10) { |pid| pids.index(pid) }.dup
    assert_equal pids.last(2), pids.reject { |pid| third[pid].equal?(second[pid]) }
    assert_equal pids.first(1), rollups.call(starts.slice(pids.first), seconds: 0).keys
  ensure
    pids&.each { |pid| Process.kill(:KILL, pid).then { Process.wait(pid) } }
  end

  def test_the_tree_has_children_grandchildren_and_those_of_other_threads_and_sessions
    script = <<~RUBY
      inner = Thread.new { spawn("sleep", "60") }.value
      outer = fork { Process.setsid; spawn("sleep", "60"); sleep }
      sleep 0.01 until system("pgrep", "-P", outer.to_s, out: File::NULL)
      #{WAITING}
    RUBY
    with_program(RbConfig.ruby, "-e", script) do |pid|
      pids = Processes::Tree.new(pid).pids
      assert_equal 4, pids.size
      assert_equal pid, pids.first
      assert_equal 2, pids.count { |other| Processes::Cpu.parent(other) == pid }
      pids.drop(1).each { |other| Process.kill(:KILL, other) }
    end
  end

  def test_the_tree_without_the_kernels_list_of_children_is_the_same
    with_program("sh", "-c", "sleep 60 & echo up; wait") do |pid|
      tree = Processes::Tree.new(pid)
      expected = tree.pids
      assert_equal 2, expected.size
      assert_equal expected, [pid, *tree.send(:by_parent, pid)]
    end
  end

  def test_mappings_have_the_executable_and_the_heap
    with_program(RbConfig.ruby, "-e", WAITING) do |pid|
      live = Processes::Live.find(pid)
      assert_equal File.realpath(RbConfig.ruby), live.executable
      mappings = live.mappings
      code = mappings.find { |mapping| mapping.path == live.executable && mapping.permissions.include?("x") }
      assert_predicate code, :file?
      assert_operator code.past, :>, code.first
      assert(mappings.any? { |mapping| mapping.path == "[heap]" && !mapping.file? })
    end
  end

  def test_paths_with_spaces_are_kept_whole
    line = "7f0000000000-7f0000001000 r--p 00002000 08:01 42                         /opt/a b/lib.so (deleted)\n"
    mapping = Processes::Mapping.parse(line).first
    assert_equal "/opt/a b/lib.so (deleted)", mapping.path
    assert_equal [0x7f0000000000, 4096, 0x2000, 42], [mapping.first, mapping.past - mapping.first, mapping.offset, mapping.inode]
    assert_predicate mapping, :deleted?
  end

  def test_what_is_no_process_is_refused_with_a_sentence
    assert_match(/"abc" is not a process number/, assert_raises(UsageError) { Processes::Live.find("abc") }.message)
    assert_match(/"-1" is not a process number/, assert_raises(UsageError) { Processes::Live.find("-1") }.message)
    assert_match(/there is no process 999999999/, assert_raises(Error) { Processes::Live.find("999999999") }.message)
  end

  def test_a_zombie_is_refused_with_a_sentence
    pid = spawn("true")
    sleep 0.01 until Processes::Cpu.state(pid) == "Z"
    assert_match(/has ended/, assert_raises(Error) { Processes::Live.find(pid) }.message)
  ensure
    Process.wait(pid)
  end

  private

  # Its share of what it shares changes when other processes begin and end: both are read while it stays the same.
  #
  # @return [Array(Hash, Integer)]
  def rollup_and_pss(pid)
    200.times do
      before = Processes::Memory.rollup(pid)
      pss = Processes::Memory.pss_bytes(pid)
      return [before, pss] if pss == before["pss_bytes"]
    end
    flunk "other processes come and go without end"
  end
end
