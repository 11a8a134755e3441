# frozen_string_literal: true

require "limit/limit_helper"

# Which control group limits a process, and what counts as used.
class MemoryGroupTest < Minitest::Test
  include LimitHelper

  def test_the_group_with_the_least_headroom_counts
    groups = { "/" => {}, "/a" => { "memory.max" => "100000000", "memory.current" => "90000000" },
               "/a/b" => { "memory.max" => "max", "memory.high" => "50000000", "memory.current" => "1000000" } }
    with_unified_groups("/a/b", **groups) do |root|
      group, problems = Culet::MemoryGroup.tightest(root: root)
      assert_empty problems
      assert_equal ["#{root}/sys/fs/c group/a", 100_000_000, 2], [group.folder, group.limit_bytes, group.version]
    end
  end

  def test_the_lower_of_two_limits_of_a_group_counts
    with_unified_groups("/a", "/a" => { "memory.max" => "900", "memory.high" => "500", "memory.current" => "1" }) do |root|
      assert_equal 500, Culet::MemoryGroup.tightest(root: root).first.limit_bytes
    end
  end

  def test_what_the_kernel_reclaims_is_not_used
    stat = "anon 500\nfile 400\ninactive_file 100\nactive_file 250\nfile_mapped 200\nslab_reclaimable 30\n"
    with_unified_groups("/a", "/a" => { "memory.max" => "5000", "memory.current" => "1000\n", "memory.stat" => stat }) do |root|
      assert_equal 1000 - 100 - 50 - 30, Culet::MemoryGroup.tightest(root: root).first.used_bytes
    end
  end

  def test_in_a_container_the_path_of_the_host_leads_to_the_mounted_group
    with_unified_groups("/docker/x/worker", mount_root: "/docker/x", "" => { "memory.max" => "77" }, "/worker" => {}) do |root|
      assert_equal 77, Culet::MemoryGroup.tightest(root: root).first.limit_bytes
    end
    with_unified_groups("/../other", "" => { "memory.max" => "78" }) do |root|
      assert_equal 78, Culet::MemoryGroup.tightest(root: root).first.limit_bytes
    end
  end

  def test_no_limit_is_no_group
    with_unified_groups("/a", "/a" => { "memory.max" => "max", "memory.high" => "max" }) do |root|
      assert_equal [nil, []], Culet::MemoryGroup.tightest(root: root)
    end
  end

  def test_the_group_of_the_process_itself
    groups = { "/" => {}, "/a" => { "memory.max" => "100", "memory.current" => "1" }, "/a/b" => { "memory.max" => "max", "memory.current" => "1" } }
    with_unified_groups("/a/b", **groups) do |root|
      own, problems = Culet::MemoryGroup.own(root: root)
      assert_equal ["#{root}/sys/fs/c group/a/b", nil, []], [own.folder, own.limit_bytes, problems]
      assert_equal "#{root}/sys/fs/c group/a/memory.max", Culet::MemoryGroup.files(root: root)[1]
    end
  end

  def test_a_file_without_a_number_is_a_sentence
    { "12x" => /has no number of bytes/, "\xff\xfe" => /has no number of bytes/, "-5" => /has no number of bytes/ }.each do |text, sentence|
      with_unified_groups("/a", "/a" => { "memory.max" => text }) do |root|
        group, problems = Culet::MemoryGroup.tightest(root: root)
        assert_nil group
        assert_match sentence, problems.first
      end
    end
  end

  def test_files_that_cannot_be_read_are_a_sentence
    with_unified_groups("/a", "/a" => {}) do |root|
      FileUtils.mkdir("#{root}/sys/fs/c group/a/memory.max")
      group, (sentence,) = Culet::MemoryGroup.tightest(root: root)
      assert_nil group
      assert_match(/\Athe memory limit is unknown: /, sentence)
    end
    folder = new_folder
    [folder, "#{folder}/caf\xE9"].each { |root| assert_match(/\Athe memory limit is unknown: No such file/, Culet::MemoryGroup.tightest(root: root).last.first) }
  end

  def test_a_hierarchy_that_is_not_mounted_is_a_sentence
    with_unified_groups("/a", "/a" => { "memory.max" => "5" }) do |root|
      File.write("#{root}/proc/self/mountinfo", "30 23 0:26 / /proc rw - proc proc rw\nbroken\n\n")
      assert_equal [nil, ["the memory limit is unknown: the control groups (version 2) are not mounted"]], Culet::MemoryGroup.tightest(root: root)
    end
  end

  def test_a_real_group_of_the_older_version
    with_real_group(64 * MEBIBYTE) do |folder|
      code = "group, problems = Culet::MemoryGroup.tightest; p group.folder, group.limit_bytes, group.version, group.used_bytes, problems"
      out, err, status = run_in_group(folder, "-rculet/system/memory_group", "-e", code)
      assert_predicate status, :success?, err
      path, limit, version, used, problems = out.lines(chomp: true)
      assert_equal [folder.inspect, (64 * MEBIBYTE).to_s, "1", "[]"], [path, limit, version, problems]
      assert_operator used.to_i, :>, MEBIBYTE
    end
  end
end
