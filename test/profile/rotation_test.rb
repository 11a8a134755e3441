# frozen_string_literal: true

require "test_helper"
require "culet/tools/profile/rotation"

# The folder of the continuous mode.
class ProfileRotationTest < Minitest::Test
  START = Time.utc(2026, 11, 23, 23, 59, 30)

  def test_the_newest_files_stay
    folder = new_folder
    own = ["notes.txt", "\xFF", "culet-profile-1.pb.gz", "my-culet-profile-20260101T000000Z.pb.gz"]
    own.each { |name| File.write(File.join(folder, name), "") }
    rotation = Culet::Profile::Rotation.new(folder, keep: 2)
    4.times { |minute| rotation.write("profile #{minute}", START, START + (60 * minute)) }
    written = %w[culet-profile-20261124T000130Z.pb.gz culet-profile-20261124T000230Z.pb.gz]
    assert_equal (own + written).map(&:b).sort, Dir.children(folder).map(&:b).sort
    assert_equal(["profile 2", "profile 3"], written.map { |name| File.read(File.join(folder, name)) })
    assert_equal({ "folder" => folder, "written" => 4 }, rotation.to_h)
  end

  def test_a_missing_folder_is_made
    parent = new_folder
    folder = File.join(parent, "profiles")
    Culet::Profile::Rotation.new(folder, keep: 1).write("x", START, START)
    assert_equal ["culet-profile-20261123T235930Z.pb.gz"], Dir.children(folder)
  end

  def test_folders_that_cannot_be_written
    parent = new_folder
    file = File.join(parent, "file")
    File.write(file, "")
    { file => /cannot make the directory #{file}: file exists/, File.join(parent, "a/b") => /cannot make the directory .*no such file/,
      "/proc" => %r{cannot write /proc/culet-profile-\d+T\d+Z\.pb\.gz: } }.each do |folder, sentence|
      error = assert_raises(Culet::Error) { Culet::Profile::Rotation.new(folder, keep: 1).write("x", START, START) }
      assert_match(/\A#{sentence}/, error.message)
    end
  end

  # What is written before the disk is full stays, and no part of a file.
  def test_a_full_disk
    skip "only root can mount a small disk" unless Process.uid.zero?
    Dir.mktmpdir do |folder|
      mounted = system("mount", "-t", "tmpfs", "-o", "size=64k", "none", folder, err: File::NULL)
      skip "no disk can be mounted here" unless mounted
      rotation = Culet::Profile::Rotation.new(folder, keep: 5)
      rotation.write("x" * 20_000, START, START)
      error = assert_raises(Culet::Error) { 4.times { |number| rotation.write("x" * 20_000, START, START + 1 + number) } }
      assert_match(/\Acannot write .*: no space left on device\z/, error.message)
      sizes = Dir.children(folder).map { |name| File.size(File.join(folder, name)) }
      assert_includes 2..3, sizes.size
      assert_equal [20_000], sizes.uniq
    ensure
      system("umount", folder) if mounted
    end
  end
end
