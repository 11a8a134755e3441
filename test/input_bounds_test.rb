# frozen_string_literal: true

require_relative "scope/scope_helper"
require "open3"

# Small files that stand for very much: each is read, or refused, within the memory and the processor time that a limit
# of its size allows. The processor time guards against reading without end; what is measured is the memory.
class InputBoundsTest < Minitest::Test
  include ScopeHelper

  SECONDS = 60
  # Ruby with culet has 40.
  MOST_MEGABYTES = 500
  ALL = ENV.key?("CULET_TEST_ALL")
  # Writes its megabytes at the peak to the file that is named first. `play` is `culet live FILE` without its server.
  PROGRAM = <<~'RUBY'
    require "culet/cli"
    require "culet/tools/live"
    require "culet/tools/live/recording"

    def play(file)
      Culet::Live::Recording.new(file).history
      0
    rescue Culet::Error => e
      warn("culet: #{e.message}")
      1
    end

    peak, *words = ARGV
    status = words.first == "play" ? play(words.last) : Culet::CLI.run(words)
    File.write(peak, File.read("/proc/self/status")[/VmHWM:\s+(\d+)/, 1].to_i / 1000)
    exit!(status)
  RUBY

  def setup = @directory = new_folder

  def path(name) = File.join(@directory, name)

  # Runs the verb in a Ruby of its own: a forked child would begin with the memory of the tests that ran before.
  #
  # @param most [Integer] megabytes
  # @return [String] the sentence of a file that was refused, or what was said beside the report
  def assert_bounded(*words, most: MOST_MEGABYTES)
    _, sentence, status = Open3.capture3(RbConfig.ruby, "-I#{TestHelper::ROOT}/lib", "-r#{TestHelper::ROOT}/bin/gems.rb", "-e", PROGRAM,
                                         path("peak"), *words, rlimit_cpu: SECONDS)
    assert_includes [0, 1], status.exitstatus, "#{words.join(" ")}: #{status}, #{sentence}"
    assert_operator Integer(File.read(path("peak"))), :<, most, words.join(" ")
    assert_match(/\Aculet: [^\n]+\n\z/, sentence) if status.exitstatus == 1
    sentence
  end

  # ---- snapshots ----

  def snapshot(name, *streams)
    File.binwrite(path(name), Culet::Scope::SnapshotFile::HEADER + streams.map { |stream| Zlib.gzip(stream) }.join)
    path(name)
  end

  # Zlib makes 1,000 bytes of one: an empty record has two.
  def test_snapshots_that_unpack_to_very_much
    zeros = snapshot("zeros", "culet-scope 1\n\0\0".b << ("\0" * (100 << 20)))
    assert_operator File.size(zeros), :<, 153_000
    assert_match(/unpacks to more than a snapshot of its size has/, assert_bounded("report", zeros, most: 200))
    many = snapshot("many", *Array.new(40) { "\0" * (1 << 20) })
    assert_match(/unpacks to more/, assert_bounded("report", many, most: 200))
  end

  def test_streams_of_very_many_records
    { "empty" => "x\0".b * 1_000_000, "short" => "x\1\1".b * 1_000_000, "without end" => "x\xff\xff\xff\x7f".b + ("\xff".b * (1 << 20)) }.each do |name, records|
      body = "culet-scope 1\n\0\0".b << records << "E\4"
      sentence = assert_bounded("report", snapshot(name, body + [Zlib.crc32(body.byteslice(0, body.bytesize - 2))].pack("V")), most: 250)
      assert_match(/is damaged: (a record in it is empty|it has more records than its size allows)|is cut off/, sentence, name)
    end
  end

  def test_records_of_very_many_numbers_and_objects
    long = small_stream { |writer| writer.numbers("P", 0, tail: "\xff".b * (4 << 20)) }
    assert_match(/a number in it is longer than 64 bits/, assert_bounded("report", snapshot("long", long), most: 250))
    runs = small_stream(mapping: MAPPING.merge("end" => 1 << 50)) { |writer| writer.numbers("P", 0, tail: "\1\1\1\5".b * ((ALL ? 12 : 2) << 18)) }
    assert_bounded("report", snapshot("runs", runs))
    { "arena" => "x", "problem" => "sentence" }.each do |kind, field|
      nested = Writer.new.object("process", PROCESS).object("allocator", ALLOCATOR)
      8.times { nested.object(kind, field => [{ "" => 0 }] * 200_000) }
      assert_match(/has a list where none belongs/, assert_bounded("report", snapshot(kind, nested.close), most: 250))
    end
    assert_match(/a record in it is too long/, assert_bounded("report", snapshot("longer", small_stream { |w| w.object("gc", "x" => "y" * (3 << 20)) })))
  end

  # A sparse file takes no disk. What is behind its first damage is not read.
  def test_sparse_files_are_not_read
    { "bare" => "", "headed" => Culet::Scope::SnapshotFile::HEADER, "whole" => File.binread(snapshot("x", small_stream)),
      "trace" => ["culettrc", 1, 4096, 65_536, 4096, 40_000].pack("a8 L4 Q").ljust(4096, "\0"), "profile" => "culet-profile 1\n", "json" => "{", "live" => "{}\n" }.each do |name, head|
      File.binwrite(path(name), head)
      File.truncate(path(name), 3 << 30)
    end
    verbs = { "bare" => %w[report], "headed" => %w[report], "whole" => %w[report], "trace" => %w[replay --info], "profile" => %w[profile],
              "json" => %w[requires], "live" => %w[play] }
    verbs.each { |name, words| refute_empty assert_bounded(*words, path(name), most: 150), name }
    refute_empty assert_bounded("autopsy", path("bare"), most: 150)
  end

  # ---- profiles ----

  # @param sites [Integer] on one stack
  def profile(name, sites:, depth: 1023, more: [])
    lines = ["culet-profile 1", "P 42 16384 1700000000000000000 1700000060000000000 3 0 0", "F 1 10 /app/a.rb\tObject#leak", *more]
    depth.times { |at| lines << "K #{at + 1} #{at} #{((1 << 56) | (1 << 24) | at).to_s(16)}" }
    sites.times { |at| lines << "S m #{depth} 0 #{at} l 1 1 #{1000 + at} 1" }
    File.write(path(name), [*lines, "E #{lines.size}", ""].join("\n"))
    path(name)
  end

  def test_profiles_of_very_many_frames
    assert_match(/has more frames in its sites than its size allows/, assert_bounded("profile", profile("deep", sites: ALL ? 100_000 : 20_000)))
    assert_empty assert_bounded("profile", profile("wide", sites: ALL ? 100_000 : 5000, depth: 5))
    labels = Array.new(100) { |at| "L #{at + 1} #{Array.new(500) { |one| "k#{one}=v" }.join("\t")}" }
    assert_empty assert_bounded("profile", profile("labels", sites: 100, depth: 5, more: labels))
  end

  def test_profiles_of_very_many_mappings
    count = ALL ? 60_000 : 8000
    lines = ["culet-profile 1", "P 42 16384 1700000000000000000 1700000060000000000 3 0 0"]
    count.times { |at| lines << "M #{((at * 0x2000) + 0x1000).to_s(16)} #{((at * 0x2000) + 0x3000).to_s(16)} 0 - /lib/x#{at}.so" }
    count.times { |at| lines << "K #{at + 1} 0 #{((at * 0x2000) + 0x1500).to_s(16)}" }
    count.times { |at| lines << "S m #{at + 1} 0 0 l 1 1 1000 1" }
    File.write(path("x.profile"), [*lines, "E #{lines.size}", ""].join("\n"))
    assert_match(/\Aculet: wrote/, assert_bounded("profile", path("x.profile"), "--pprof", path("x.pprof")))
  end

  # ---- JSON ----

  def test_dumps_that_unpack_to_very_much
    { "lines" => "{\"address\":\"0x1\", \"type\":\"OBJECT\"}\n" * 1_000_000, "broken" => "{\"type\":\"ROOT\"}\n#{"\n" * 500_000}" }.each do |name, text|
      File.binwrite(path(name), Zlib.gzip(text))
      assert_match(/is damaged: (it unpacks to more|more than \d+ of its lines)/, assert_bounded("strings", path(name), most: 250), name)
    end
  end

  def test_documents_of_very_long_numbers_and_nests
    { "number" => "[#{"9" * 4_000_000}]", "nest" => "[" * 4_000_000, "infinite" => '{"kind":"culet require","x":1e400}' }.each do |name, text|
      File.write(path(name), text)
      assert_match(/is not a document of/, assert_bounded("requires", path(name), most: 250), name)
    end
  end

  # Each line is small, the state that it changes is large.
  def test_recordings_of_very_many_small_changes
    processes = (1..1000).to_h { |pid| ["#{pid}-1", { "pid" => pid, "title" => "x", "start_ticks" => 1, "figures" => { "levels" => { "a" => 1, "b" => 2 } } }] }
    lines = [{ "culet_live" => 1, "culet" => "1", "subject" => "x", "every_seconds" => 1.0 },
             { "n" => 1, "full" => { "at" => 1.0, "order" => processes.keys, "processes" => processes } }]
    (ALL ? 30_000 : 2000).times { |at| lines << { "patch" => { "at" => 2.0 + at, "processes" => { "7-1" => { "rss_bytes" => at } } } } }
    File.write(path("x.live"), lines.map { |line| "#{JSON.generate(line)}\n" }.join)
    assert_empty assert_bounded("play", path("x.live"), most: 250)
  end
end
