# frozen_string_literal: true

require_relative "scope_helper"

# Snapshots in files: whole, cut off, damaged, foreign, of another version; and what writing them leaves behind.
class SnapshotFileTest < Minitest::Test
  include ScopeHelper

  def test_what_is_written_is_read_again
    in_file do |path|
      write(path, small_stream)
      assert_equal [small_stream], Culet::Scope.packed_snapshots(path).map(&:stream)
      assert_equal 0o600, File.stat(path).mode & 0o777
      assert_equal [path], Dir[File.join(File.dirname(path), "*")]
    end
  end

  def test_a_series
    in_file do |path|
      streams = Array.new(3) { |index| small_stream(process: PROCESS.merge("pid" => index + 1)) }
      write(path, *streams)
      assert_equal [1, 2, 3], Culet::Scope::SnapshotFile.load(path).map(&:pid)
    end
  end

  # Each member is looked at alone: the rest of the file was copied for each, which took minutes of this size.
  def test_a_series_of_many_is_read_in_proportion
    in_file do |path|
      File.binwrite(path, Culet::Scope::SnapshotFile::HEADER + (Culet::Scope::SnapshotFile.pack("x" * 300) * 150_000))
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      assert_equal 150_000, Culet::Scope::SnapshotFile.packed_snapshots(path).size
      assert_operator Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - before, :<, 30
    end
  end

  def test_what_is_no_file_is_said
    ["/dev/zero", "/dev/null"].each do |path|
      error = assert_raises(Culet::Error) { Culet::Scope::SnapshotFile.packed_snapshots(path) }
      assert_equal "#{path} is a device; give a snapshot or a process number", error.message
    end
  end

  # What was there is replaced only by a whole file, and its permissions are the new one's.
  def test_another_file_of_that_name_is_replaced_at_the_end
    in_file do |path|
      File.write(path, "before")
      File.chmod(0o644, path)
      Culet::Scope::Series.new(path).write do |series|
        series.add(small_stream)
        assert_equal "before", File.read(path)
      end
      assert_equal 0o600, File.stat(path).mode & 0o777
      assert_equal 1, Culet::Scope::SnapshotFile.load(path).size
    end
  end

  def test_a_failure_leaves_what_was_there_and_nothing_else
    in_file do |path|
      File.write(path, "before")
      assert_raises(RuntimeError) { Culet::Scope::Series.new(path).write { raise "no snapshot could be taken" } }
      assert_equal ["before", [path]], [File.read(path), Dir[File.join(File.dirname(path), "*")]]
    end
  end

  # A series that is ended early keeps what was taken.
  def test_a_series_ended_early
    in_file do |path|
      assert_raises(Interrupt) do
        Culet::Scope::Series.new(path).write do |series|
          series.add(small_stream)
          raise Interrupt
        end
      end
      assert_equal 1, Culet::Scope::SnapshotFile.load(path).size
    end
  end

  def test_a_link_stays_and_its_target_is_replaced
    in_file do |path|
      target = "#{path}.target"
      File.write(target, "before")
      File.symlink(target, path)
      write(path, small_stream)
      assert File.symlink?(path)
      assert_equal 1, Culet::Scope::SnapshotFile.load(target).size
    end
  end

  def test_a_full_disk
    error = assert_raises(Culet::Error) { write("/dev/full", small_stream) }
    assert_equal "cannot write /dev/full: no space left on device", error.message
  end

  # What does not fit is left out, what was there before it stays readable: here a limit on a file's size is the disk's end.
  def test_a_disk_that_becomes_full_within_a_series
    in_file do |path|
      script = <<~RUBY
        require "culet/scope"
        stream = File.binread(#{"#{path}.stream".inspect})
        trap("XFSZ", "IGNORE")
        Process.setrlimit(:FSIZE, 30_000)
        begin
          Culet::Scope::Series.new(#{path.inspect}).write { |series| loop { series.add(stream) } }
        rescue Culet::Error => e
          print e.message
        end
      RUBY
      File.binwrite("#{path}.stream", noisy_stream)
      out, err, = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, env: NEUTRAL)
      assert_equal ["cannot write #{path}: file too large", ""], [out, err]
      assert_includes 1..5, Culet::Scope::SnapshotFile.load(path).size
    end
  end

  def test_a_directory_that_is_not_there
    error = assert_raises(Culet::Error) { write("/nowhere/a.snapshot", small_stream) }
    assert_equal "cannot write /nowhere/a.snapshot: no such file or directory", error.message
  end

  def test_every_truncation_is_told
    in_file do |path|
      write(path, small_stream)
      whole = File.binread(path)
      (0...whole.bytesize).each do |length|
        File.binwrite(path, whole.byteslice(0, length))
        error = assert_raises(Culet::Error, "cut to #{length}") { Culet::Scope::SnapshotFile.load(path) }
        assert_match(/\A#{Regexp.escape(path)} is cut off/, error.message)
      end
    end
  end

  def test_every_changed_byte_is_told
    in_file do |path|
      write(path, small_stream)
      whole = File.binread(path)
      # Of gzip's ten bytes of header, the time and the system are not looked at by anybody.
      [*0...(Culet::Scope::SnapshotFile::HEADER.bytesize + 4), *(Culet::Scope::SnapshotFile::HEADER.bytesize + 10)...whole.bytesize].each do |at|
        changed = whole.dup
        changed.setbyte(at, changed.getbyte(at) ^ 0x55)
        File.binwrite(path, changed)
        assert_match(/\A#{Regexp.escape(path)} (is|was) /, assert_raises(Culet::Error, "changed at #{at}") { Culet::Scope::SnapshotFile.load(path) }.message)
      end
    end
  end

  { "foreign" => ["a picture", /is not a snapshot; `culet snapshot PID` writes one\z/],
    "newer" => ["culet-snapshot 2\n\x1f\x8b", /was written by another version of culet \(snapshot format "2", this one reads 1\)/],
    "empty" => ["", /is cut off; take it again\z/] }.each do |what, (content, pattern)|
    define_method("test_a_file_that_is_#{what}") do
      in_file do |path|
        File.binwrite(path, content)
        assert_match pattern, assert_raises(Culet::Error) { Culet::Scope::SnapshotFile.load(path) }.message
      end
    end
  end

  def test_a_file_that_is_not_there_and_a_directory
    assert_match(/\Athere is no file no-such\.snapshot/, assert_raises(Culet::Error) { Culet::Scope::SnapshotFile.load("no-such.snapshot") }.message)
    assert_match(/ is a directory; give a snapshot/, assert_raises(Culet::Error) { Culet::Scope::SnapshotFile.load(ROOT) }.message)
  end

  private

  def in_file = in_directory { |directory| yield File.join(directory, "one.snapshot") }

  def write(path, *streams)
    Culet::Scope::Series.new(path).write { |series| streams.each { |stream| series.add(stream) } }
  end

  # Some kilobytes that do not become fewer when they are packed.
  def noisy_stream = small_stream { |writer| writer.record("?", Random.new(1).bytes(5_000)) }
end
