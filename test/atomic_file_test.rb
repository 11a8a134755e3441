# frozen_string_literal: true

require "test_helper"
require "culet/atomic_file"

class AtomicFileTest < Minitest::Test
  def setup
    @directory = Dir.mktmpdir
  end

  def teardown
    FileUtils.remove_entry(@directory)
  end

  def test_writes_and_replaces
    path = file("report")
    %w[first second].each do |content|
      Culet::AtomicFile.write(path, content)
      assert_equal content, File.read(path)
    end
    assert_equal %w[report], Dir.children(@directory)
  end

  def test_a_directory_and_a_missing_directory_are_refused_and_nothing_is_left
    [@directory, file("none/report")].each do |path|
      error = assert_raises(Culet::Error) { Culet::AtomicFile.write(path, "x") }
      assert_match(/\Acannot write #{Regexp.escape(path)}: /, error.message)
    end
    assert_empty Dir.children(@directory)
    refute_path_exists "#{@directory}.#{Process.pid}.part"
  end

  # A pipe in a directory of ours: what goes wrong here would otherwise replace a device of the machine.
  def test_a_pipe_is_written_to_and_stays_a_pipe
    path = file("pipe")
    File.mkfifo(path)
    reader = Thread.new { File.read(path) }
    Culet::AtomicFile.write(path, "through")
    assert_equal "through", reader.value
    assert File.pipe?(path)
  end

  def test_a_link_stays_a_link
    File.write(file("target"), "old")
    File.symlink("target", file("link"))
    Culet::AtomicFile.write(file("link"), "new")
    assert File.symlink?(file("link"))
    assert_equal "new", File.read(file("target"))
  end

  private

  def file(name) = File.join(@directory, name)
end
