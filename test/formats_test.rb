# frozen_string_literal: true

require "test_helper"
require "json"
require "zlib"

# Files that released versions of culet have written stay readable, and say the same (docs/versioning.md). The folders
# of test/fixtures/formats are the versions of the formats; their files are not made anew.
class FormatsTest < Minitest::Test
  FOLDER = "#{ROOT}/test/fixtures/formats/1".freeze

  def test_a_snapshot_of_culets_heap
    assert_report("culet", "culet.snapshot")
    map = json("map", "#{FOLDER}/culet.snapshot")
    assert_equal [15_482_880, 10_237_952], map.values_at("rss_bytes", "pss_bytes")
    assert_operator map["used_bytes"], :>, 0
  end

  def test_a_snapshot_of_the_heap_of_glibc
    assert_report("glibc", "glibc.snapshot")
    map = json("map", "#{FOLDER}/glibc.snapshot")
    keys = %w[rss_bytes arenas heaps used_bytes free_resident_bytes free_returned_bytes mmapped_bytes tcache_bytes]
    assert_equal [15_433_728, 1, 0, 3_635_552, 468_640, 40_960, 1_449_984, 54_928], map.values_at(*keys)
  end

  def test_a_snapshot_with_ruby_objects
    assert_report("culet", "objects.snapshot")
    objects = json("report", "#{FOLDER}/objects.snapshot").fetch("objects")
    assert_equal 20_453, objects["count"]
    strings = objects["types"].find { |type| type["name"] == "T_STRING" }
    assert_equal [16_338, 653_520, 1_770_558], strings.values_at("count", "slot_bytes", "malloc_bytes")
  end

  def test_a_series
    snapshots = json("report", "#{FOLDER}/series.snapshot").fetch("snapshots")
    assert_equal 3, snapshots.size
    assert_equal [3613], snapshots.map { |snapshot| snapshot["pid"] }.uniq
    snapshots.each { |snapshot| assert_equal snapshot["rss_bytes"], snapshot["levels"].values.sum }
  end

  def test_two_snapshots_compared
    difference = json("diff", "#{FOLDER}/culet.snapshot", "#{FOLDER}/glibc.snapshot")
    assert_equal [15_482_880, 15_433_728], %w[before after].map { |side| difference.dig(side, "rss_bytes") }
  end

  def test_a_trace
    replay = json("replay", "#{FOLDER}/allocations.trace", "--runs", "1", "--allocators", "glibc")
    assert replay["complete"]
    refute_empty replay["results"]
  end

  def test_a_profile
    profile = json("profile", "#{FOLDER}/allocations.profile")
    assert_equal ["live", 16_384, 7_435_782, 229], profile.values_at("view", "sample_bytes", "total_bytes", "samples")
    assert_includes profile["sites"].flat_map { |site| site["frames"].map { |frame| frame["file"] } }.compact, "/tmp/culet/ending.rb"
  end

  def test_a_report_of_requires
    read = json("requires", "#{FOLDER}/require.json")
    assert_equal json_file("require.json")["features"], read["features"]
  end

  def test_a_black_box
    directory = new_folder
    path = File.join(directory, "killed")
    File.binwrite(path, Zlib::GzipReader.open("#{FOLDER}/killed.box.gz", &:read))
    found = json("autopsy", path)
    assert_equal [3747, "-e", "culet", 15_560_704], found.values_at("pid", "program", "allocator", "rss_bytes")
    assert_equal 4_729_088, found.dig("levels", "malloc_used")
    assert_equal [16, 1, 23_698], found["gc"].values_at("count", "major", "live_slots")
  end

  # Readers of other versions find the heap by it: members are added at the end alone.
  def test_the_record_of_the_heap_begins_as_it_did
    kept = File.readlines("#{FOLDER}/selfmap.txt", chomp: true)
    assert_equal kept, selfmap.first(kept.size)
  end

  private

  def culet(*words)
    out, = assert_culet_success(*words)
    out
  end

  def json(*words) = JSON.parse(culet(*words, "--json"))

  def json_file(name) = JSON.parse(File.read("#{FOLDER}/#{name}"))

  def assert_report(allocator, name)
    report = json("report", "#{FOLDER}/#{name}")
    assert_equal allocator, report["allocator"]
    assert_equal report["rss_bytes"], report["levels"].values.sum
    assert_operator report["unexplained_bytes"], :<, report["rss_bytes"] / 50
  end

  # Each member with its type, in order, of struct culet_selfmap; before them the magic and the version.
  def selfmap
    text = File.read("#{ROOT}/allocator/src/selfmap.h").gsub(%r{/\*.*?\*/}m, "")
    constants = text.scan(/^#define CULET_SELFMAP_\w+ .*$/).map(&:strip)
    constants + text[/struct culet_selfmap \{(.*)^\};/m, 1].scan(/[^;{}]+[;{]|\}[^;]*;/).map { |member| member.split.join(" ") }
  end
end
