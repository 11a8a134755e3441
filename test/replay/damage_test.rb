# frozen_string_literal: true

require_relative "../trace/trace_helper"

# Files that are cut, foreign or damaged: one sentence, whatever is wrong.
class DamageTest < Minitest::Test
  include TraceHelper

  # @return [Array(Integer, String)] exit status and stderr of culet-replay; the status is nil after a signal
  def replay_info(file)
    _, err, status = run_program(Culet::Native.part("replay", "culet-replay"), "--info", file)
    [status.exitstatus, err]
  end

  def assert_refused(message, file)
    status, err = replay_info(file)
    assert_equal [1, 1], [status, err.lines.size], err
    assert_match message, err
  end

  def test_a_file_cut_at_any_length_is_refused_with_a_sentence
    whole = File.binread(FIXTURES.first)
    lengths = [1, 7, 8, 9, 100, 4095, 4096, 4097, 4103, 4104, 4200] + (1..30).map { |i| whole.bytesize * i / 31 } + [whole.bytesize - 9]
    lengths.each do |length|
      File.binwrite(path, whole.byteslice(0, length))
      assert_refused(/#{path} is truncated: it ends /, path)
    end
  end

  # The replay is stopped at some moment, and the file truncated: again until that comes before its end.
  def test_a_file_that_is_cut_off_while_it_is_read
    record(compile("for (int i = 0; i < 1500000; i++) free(malloc(i % 2000));"))
    whole = path("whole.trace")
    FileUtils.mv(path, whole)
    endings = []
    assert_settles("one is stopped before its end") do
      FileUtils.cp(whole, path)
      replay = Process.spawn(Culet::Native.part("replay", "culet-replay"), "--info", path, out: File::NULL, err: path("err"))
      sleep(0.006 * ((endings.size % 8) + 1))
      Process.kill("STOP", replay)
      File.truncate(path, 10_000)
      Process.kill("CONT", replay)
      status = Process.wait2(replay).last
      refute_predicate status, :signaled?, status.to_s
      assert_equal [status.exitstatus, status.exitstatus], [status.success? ? 0 : 1, File.readlines(path("err")).size]
      endings << status.exitstatus
      endings.size >= 8 && endings.include?(1)
    end
  end

  def test_a_cut_file_is_one_sentence_of_the_verb_too
    whole = File.binread(FIXTURES.first)
    [100, 5000].each do |length|
      File.binwrite(path, whole.byteslice(0, length))
      assert_sentence(/\Aculet: #{path} is truncated: /, "replay", path, "--runs", "1", "--allocators", "glibc")
    end
  end

  {
    "empty" => ["", /is empty/], "foreign" => ["\x7fELF#{"x" * 9000}", /is not a culet trace/],
    "short_and_foreign" => ["abc", /is not a culet trace/]
  }.each do |name, (bytes, message)|
    define_method(:"test_a_file_that_is_#{name}") do
      File.binwrite(path, bytes)
      assert_refused message, path
      assert_sentence(message, "replay", path)
    end
  end

  def test_what_is_no_file
    assert_refused(/cannot read .*No such file/, path("missing"))
    assert_refused(/is not a file/, @directory)
    [path("missing"), @directory].each do |file|
      assert_sentence(/\Aculet: (there is no file #{file}|#{file} is a directory); give a trace$/, "replay", file)
    end
  end

  def test_a_later_format_is_named
    bytes = File.binread(FIXTURES.first)
    bytes[8, 4] = [99].pack("L")
    File.binwrite(path, bytes)
    assert_refused(/recorded by a newer culet \(format 99\)/, path)
    assert_sentence(/newer culet \(format 99\)/, "replay", path)
  end

  # @return [String] a trace of one chunk with these events
  def trace(*events)
    head = ["culettrc", 1, 4096, 65_536, 4096, 1].pack("a8 L4 Q").ljust(4096, "\0")
    [head, [0x4b4e4843, 8 + events.sum(&:bytesize)].pack("L2"), *events].join
  end

  # A realloc with the number 3 whose wait is 2^64 - 3, so that it would end as number 1, and a malloc with the number 4.
  def test_a_realloc_that_ends_before_it_begins_is_refused
    wait = [0xFD, *[0xFF] * 8, 1]
    File.binwrite(path, trace([7, 1, 1].pack("C*"), [0x1B, 2, 4, 4, *wait].pack("C*"), [0x19, 2, 8].pack("C*")))
    assert_refused(/is damaged at byte /, path)
  end

  # Whatever the bytes: an answer or one sentence, never a crash. The seed is fixed, so that a failure comes again.
  def test_damaged_bytes_never_crash_the_player
    whole = File.binread(FIXTURES.first)
    random = Random.new(20_240)
    statuses = Array.new(all_tests? ? 2_000 : 120) do
      bytes = whole.dup
      (1 + random.rand(3)).times { bytes.setbyte(random.rand(4).zero? ? random.rand(64) : 4096 + random.rand(bytes.bytesize - 4096), random.rand(256)) }
      File.binwrite(path, bytes)
      status, err = replay_info(path)
      assert_includes [0, 1], status, err
      assert_equal status, err.lines.size, err
      status
    end
    assert_includes statuses, 1
  end
end
