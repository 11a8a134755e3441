# frozen_string_literal: true

require_relative "trace/trace_helper"
require_relative "scope/scope_helper"
require "culet/cli"
require_relative "../boot/lib/report"
require_relative "../boot/lib/report/table"
require "culet/scope"
require "socket"
require "stringio"
require "timeout"
require "zlib"

# Files that culet wrote, changed at random and read again: an answer or one sentence, and never anything else. The seed
# is fixed, so that a failure comes again.
class HostileFilesTest < Minitest::Test
  include ScopeHelper

  TIMES = ENV["CULET_TEST_ALL"] ? 20 : 0.5
  SEED = 20_260
  VALUES = [nil, true, false, 0, -1, 1, 1 << 31, 1 << 32, 1 << 47, 1 << 62, 1 << 64, 1 << 200, -(1 << 63), 1.5, -0.0, 1e308, 1e-308,
            "", "x", "\u0000", "a\u0000b", "9" * 5000, "\e[31m", "ä" * 300, "x" * 5000, "0x", "0x1", "/", "../..",
            [], {}, [nil], [[]], [{}], { "a" => 1 }, [-1, 1 << 64]].freeze

  def setup
    @directory = new_folder
    @random = Random.new(SEED)
  end

  def path(name) = File.join(@directory, name)

  # @yieldparam [String] what the verb wrote
  # @return [Integer] exit status
  def assert_answered(*words, told: nil)
    out = StringIO.new
    err = StringIO.new
    status = begin
      Culet::CLI.run(words, out: out, err: err)
    rescue StandardError, SystemStackError, NoMemoryError => e
      flunk("culet #{words.join(" ")}: #{told}: #{e.full_message(highlight: false)[0, 1500]}")
    end
    assert_includes [0, 1], status, told
    assert_match(/\Aculet: [^\n]+\n\z/, err.string, told) if status == 1
    refute_empty out.string if status.zero?
    refute_includes out.string, "\e", told
    yield out.string if status.zero? && block_given?
    status
  end

  # ---- kinds of files ----

  # Every verb that reads files, with the words before the file.
  READERS = [%w[report], %w[map], %w[map --json], %w[profile], %w[strings], %w[requires], %w[requires --tree], %w[requires --unused], %w[replay], %w[replay --info],
             %w[live], %w[autopsy]].freeze
  # Of the files of which two are compared.
  PAIRS = [%w[diff], %w[requires --diff]].freeze
  # That take a pipe with a writer.
  STREAMERS = READERS - [%w[replay], %w[replay --info], %w[live], %w[autopsy]]

  def test_pipes_that_nobody_writes_to
    pipe = path("pipe")
    File.mkfifo(pipe)
    file = path("x.profile")
    File.write(file, "culet-profile 1\nP 1 1 1 1 1 0 0\nE 2\n")
    words = READERS.map { |verb| [*verb, pipe] } + PAIRS.map { |verb| [*verb, pipe, pipe] } << ["profile", file, "--base", pipe]
    words.each { |list| assert_equal 1, Timeout.timeout(PATIENCE_SECONDS) { assert_answered(*list) }, list.join(" ") }
  end

  def test_what_is_no_input
    File.write(path("empty"), "")
    Socket.unix_server_socket(path("socket")) { nil }
    [path("empty"), "/dev/null", "/dev/zero", path("socket"), path("none"), "#{path("empty")}/x", "/proc/self/mem"].each do |word|
      READERS.each { |verb| assert_equal 1, assert_answered(*verb, word), [*verb, word].join(" ") }
      PAIRS.each { |verb| assert_equal 1, assert_answered(*verb, word, word), [*verb, word].join(" ") }
    end
  end

  # As of a shell's <(COMMAND).
  def test_pipes_with_a_writer
    document = JSON.generate(recorded("requires"))
    profile = "culet-profile 1\nP 1 1 1 1 1 0 0\nE 2\n"
    dump = DUMP.map { |line| "#{as_ruby(line)}\n" }.join
    snapshot = Culet::Scope::SnapshotFile::HEADER + Culet::Scope::SnapshotFile.pack(small_stream)
    { %w[requires --tree] => document, %w[profile] => profile, %w[strings] => dump, %w[strings --json] => Zlib.gzip(dump), %w[report] => snapshot,
      %w[map --json] => snapshot }.each do |verb, text|
      assert_equal 0, through_pipe(text) { |word| assert_answered(*verb, word) }, verb.join(" ")
    end
    assert_equal(0, through_pipe(profile) { |one| through_pipe(profile) { |two| assert_answered("profile", one, "--base", two) } })
    STREAMERS.each { |verb| assert_equal 1, through_pipe("x" * 100_000) { |word| assert_answered(*verb, word) }, verb.join(" ") }
    STREAMERS.each { |verb| assert_equal 1, through_pipe("") { |word| assert_answered(*verb, word) }, verb.join(" ") }
  end

  # @yieldparam word [String] path of a pipe to which another thread writes the text
  def through_pipe(text)
    reader, writer = IO.pipe(binmode: true)
    thread = Thread.new do
      writer.write(text)
    rescue Errno::EPIPE
      nil # refused by its start
    ensure
      writer.close
    end
    Timeout.timeout(PATIENCE_SECONDS) { yield "/proc/self/fd/#{reader.fileno}" }
  ensure
    reader&.close
    thread&.join
  end

  # ---- JSON ----

  # Every place of a document, as the list of keys that lead there.
  def places(value, way = [])
    list = [way]
    case value
    when Hash then value.each { |key, inner| list.concat(places(inner, [*way, key])) }
    when Array then value.each_with_index { |inner, index| list.concat(places(inner, [*way, index])) }
    end
    list
  end

  # @return [Array(Object, String)] a changed copy, and what was changed
  def changed(document, ways)
    copy = Marshal.load(Marshal.dump(document))
    told = Array.new(1 + @random.rand(2)) do
      way = ways[1 + @random.rand(ways.size - 1)]
      change(copy, way)
    end
    [copy, told.join("; ")]
  end

  def change(copy, way)
    parent = way.size == 1 ? copy : copy.dig(*way[0..-2])
    return "nothing" unless parent.is_a?(Hash) || parent.is_a?(Array)

    case @random.rand(5)
    when 0 then remove(parent, way)
    when 1 then repeat(parent, way)
    else value = Marshal.load(Marshal.dump(VALUES.sample(random: @random))) # a further change may go into it
         parent[way.last] = value
         "#{way.join(".")} = #{value.inspect[0, 40]}"
    end
  rescue TypeError
    "nothing" # an earlier change took the way
  end

  def remove(parent, way)
    parent.is_a?(Array) ? parent.delete_at(way.last) : parent.delete(way.last)
    "#{way.join(".")} removed"
  end

  def repeat(parent, way)
    return remove(parent, way) unless parent.is_a?(Array)

    parent.insert(way.last, parent[way.last])
    "#{way.join(".")} twice"
  end

  def each_changed(document, count)
    ways = places(document)
    (count * TIMES).to_i.times do
      copy, told = changed(document, ways)
      yield JSON.generate(copy), told
    end
  end

  # ---- what a require cost, what never ran ----

  def recorded(*words)
    out, = assert_culet_success(*words, "--json", "--", RbConfig.ruby, "--disable-gems", "-e",
                                "require 'set'; require 'shellwords'; begin; require 'nowhere'; rescue LoadError; end",
                                env: TestHelper::NEUTRAL)
    JSON.parse(out)
  end

  def test_reports_of_requires
    document = recorded("requires")
    File.write(path("whole.json"), JSON.generate(document))
    statuses = []
    each_changed(document, 200) do |text, told|
      File.write(path("one.json"), text)
      words = [[], ["--tree"], ["--html", path("page.html")], ["--json"], ["--sort", "retained"]].sample(random: @random)
      statuses << assert_answered("requires", *words, path("one.json"), told: told)
      pair = [path("one.json"), path("whole.json")].shuffle(random: @random)
      assert_answered("requires", "--diff", *pair, told: told)
    end
    assert_equal [0, 1], statuses.uniq.sort
  end

  def test_reports_of_unused_code
    statuses = []
    each_changed(recorded("requires", "--unused"), 250) do |text, told|
      File.write(path("one.json"), text)
      words = [[], ["--json"]].sample(random: @random)
      statuses << assert_answered("requires", "--unused", *words, path("one.json"), told: told)
    end
    assert_equal [0, 1], statuses.uniq.sort
  end

  # A tree that leads back to itself, and one that no stack has room for.
  def test_trees_of_requires_that_cannot_be
    document = recorded("requires")
    one = document["features"].first
    deep = Array.new(3_000) { |index| one.merge("parent" => (index - 1 if index.positive?)) }
    { "parent is none of those before it" => [one.merge("parent" => 0)], "too deep" => deep }.each do |words, list|
      File.write(path("one.json"), JSON.generate(document.merge("features" => list)))
      _, err, status = run_culet("requires", "--tree", path("one.json"), env: TestHelper::NEUTRAL)
      assert_equal 1, status.exitstatus
      assert_match(/\Aculet: \S+ is damaged: features\[\d+\].*#{words}/, err)
    end
  end

  # ---- recordings of requires ----

  def test_recordings_of_requires
    lines = [{ "kind" => "process", "version" => 1, "pid" => 7, "parent" => 1, "program" => "a.rb", "ruby" => "3.1", "calls" => true, "retained" => true },
             { "kind" => "begin", "id" => 1, "up" => 0, "how" => "require", "name" => "a", "at" => 0.1 },
             { "kind" => "compiled", "id" => 1, "path" => "/a.rb", "figures" => [0.1, 0.1, 1, 2, 3, 4, 5, 6] },
             { "kind" => "inner", "up" => 1, "path" => "/b.rb" },
             { "kind" => "end", "id" => 1, "result" => true, "path" => "/a.rb", "figures" => [0.2, 0.2, 1, 2, 3, 4, 5, 6] },
             { "kind" => "held", "id" => 1, "objects" => 1, "bytes" => 40 },
             { "kind" => "code", "path" => "/a.rb", "eval" => false, "bytes" => 4, "count" => 1 },
             { "kind" => "last", "at" => 1.5 }, { "kind" => "exit" }]
    each_changed(lines, 800) do |text, told|
      list = JSON.parse(text)
      log = Culet::Boot::Log.new(list.is_a?(Array) ? list.map { |line| "#{JSON.generate(line)}\n" }.join : text, name: "it")
      document = Culet::Boot::Document.new([log], command: ["a"], pid: 7).to_h
      assert Culet::Boot::Table.new(document).to_s, told
    rescue Culet::Error => e
      assert_match(/\Ait is /, e.message)
    rescue StandardError, SystemStackError => e
      flunk("#{told}: #{e.full_message(highlight: false)[0, 1500]}")
    end
  end

  # ---- dumps ----

  DUMP = [{ "type" => "ROOT", "root" => "vm", "references" => ["0x10000"] }, *Array.new(12) do |index|
    { "address" => format("0x%x", 0x10000 + (index * 40)), "type" => "STRING", "class" => "0x1000", "shared" => index == 5,
      "frozen" => index.even?, "bytesize" => 30, "value" => "a text of thirty characters #{index % 3}",
      "encoding" => "UTF-8", "file" => "/a.rb", "line" => index, "references" => ["0x10000"], "memsize" => 71, "flags" => { "wb_protected" => true } }
  end].freeze

  def test_dumps
    statuses = []
    each_changed(DUMP, 400) do |text, told|
      list = JSON.parse(text)
      lines = list.map { |line| "#{@random.rand(2).zero? ? JSON.generate(line) : as_ruby(line)}\n" }.join
      File.binwrite(path("heap.json"), bytes_changed(lines))
      statuses << assert_answered("strings", path("heap.json"), *[[], ["--json"]].sample(random: @random), told: told)
    end
    assert_equal [0, 1], statuses.uniq.sort
  end

  def as_ruby(line)
    return JSON.generate(line) unless line.is_a?(Hash)

    "{#{line.map { |key, value| "#{JSON.generate(key)}:#{JSON.generate(value)}" }.join(", ")}}"
  end

  # Mostly as they are.
  def bytes_changed(bytes)
    bytes = bytes.b
    return bytes if bytes.empty?

    case @random.rand(8)
    when 0 then bytes.byteslice(0, @random.rand(bytes.bytesize))
    when 1 then bytes.tap { @random.rand(1..4).times { bytes.setbyte(@random.rand(bytes.bytesize), @random.rand(256)) } }
    when 2 then bytes.insert(@random.rand(bytes.bytesize), @random.bytes(@random.rand(1..9)))
    when 3 then Zlib.gzip(bytes).tap { |packed| packed.setbyte(10 + @random.rand(packed.bytesize - 10), 255) }
    else bytes
    end
  end

  # ---- snapshots ----

  def test_snapshots
    records = real_records
    json = records.filter_map { |type, payload| JSON.parse(payload) if type == "J" }
    others = records.reject { |type,| type == "J" }
    statuses = []
    each_changed(json, 400) do |text, told|
      list = JSON.parse(text)
      File.binwrite(path("one.snapshot"), Culet::Scope::SnapshotFile::HEADER + Culet::Scope::SnapshotFile.pack(stream_of(list, others)))
      verb = [["report"], ["report", "--json"], ["map", "--json"], ["diff", path("one.snapshot")]].sample(random: @random)
      statuses << assert_answered(*verb, path("one.snapshot"), told: told) { |written| assert_sums(written, told) if verb == ["report", "--json"] }
    end
    assert_equal [0, 1], statuses.uniq.sort
  end

  def assert_sums(written, told)
    document = JSON.parse(written)
    assert_equal document["rss_bytes"], document["levels"].values.sum, told
  end

  # One of a small program, taken once.
  def real_records
    snapshot = path("real.snapshot")
    with_program(RbConfig.ruby, "--disable-gems", "-e", WAITING, env: TestHelper::NEUTRAL) do |pid|
      assert_culet_success("snapshot", pid.to_s, "--out", snapshot, env: TestHelper::NEUTRAL)
    end
    found = []
    Culet::Scope::Stream.new(Culet::Scope.packed_snapshots(snapshot).first.stream).each_record { |type, payload| found << [type, payload] }
    found
  end

  # Behind a right checksum, so that what is in it is looked at.
  def stream_of(list, others)
    writer = Writer.new
    [*list].each { |fields| writer.record("J", JSON.generate(fields)) }
    broken = @random.rand(others.size) if @random.rand(4).zero?
    others.each_with_index { |(type, payload), index| writer.record(type, index == broken ? bytes_changed(payload) : payload) }
    writer.close
  end

  def test_damaged_bytes_of_snapshots
    snapshot = path("real.snapshot")
    real_records
    whole = File.binread(snapshot)
    (100 * TIMES).to_i.times do
      File.binwrite(path("one.snapshot"), bytes_changed(whole))
      assert_answered("report", path("one.snapshot"))
    end
  end

  # ---- traces ----

  # Every figure of the header, at its extremes; --info ends with them all.
  def test_headers_of_traces
    whole = File.binread(TraceHelper::FIXTURES.first)
    places = { "version" => [8, 4], "header_bytes" => [12, 4], "stride" => [16, 4], "page_bytes" => [20, 4], "chunks" => [24, 8],
               "forked_at" => [32, 8], "started" => [40, 8], "monotonic" => [48, 8], "lost" => [56, 8], "pid" => [64, 4],
               "stopped" => [72, 4], "command_bytes" => [76, 4] }
    values = [0, 1, 7, 65_535, 65_536, 65_537, 0x7fffffff, 0xfffffff8, 0xffffffff, 1 << 63, (1 << 64) - 1]
    cases = places.keys.product(values).map { |name, value| { name => value } }
    cases << { "stride" => 0xffffffff, "chunks" => (1 << 64) - 1 } << { "stride" => 0xfffffff8, "chunks" => 1 << 63 }
    cases.each do |figures|
      bytes = whole.dup
      figures.each do |name, value|
        at, size = places.fetch(name)
        bytes[at, size] = [value & ((1 << (8 * size)) - 1)].pack(size == 8 ? "Q" : "L")
      end
      File.binwrite(path("t.trace"), bytes)
      _, err, status = run_program(Culet::Native.part("replay", "culet-replay"), "--info", path("t.trace"))
      assert_includes [0, 1], status.exitstatus, figures.to_s
      assert_equal status.exitstatus, err.lines.size, "#{figures}: #{err}"
      assert_read_or_refused(path("t.trace"))
    end
  end

  def assert_read_or_refused(file)
    Culet::Trace::Header.read(file).to_h
  rescue Culet::Error => e
    assert_match(/\A#{file} /, e.message)
  end
end
