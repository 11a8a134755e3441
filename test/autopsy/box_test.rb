# frozen_string_literal: true

require_relative "box_helper"

# The reader of black boxes: whole, damaged and hostile files.
class AutopsyBoxTest < Minitest::Test
  include TestHelper
  include BoxHelper

  Box = Culet::Autopsy::Box
  PLACES = Box::PLACES
  UNKNOWN = (1 << 64) - 1
  DAMAGES = ENV.key?("CULET_TEST_ALL") ? 10_000 : 400
  PROFILE = <<~TEXT
    culet-profile 1
    P 42 16384 1700000000000000000 1700000060000000000 3 0 0
    F 1 10 /app/a.rb\tObject#leak
    K 1 0 10000000100000a
    S m 1 0 0 l 10 10 163840 1e6
    B 200000 0
    E 6
  TEXT

  # @param values [Hash{Integer => Integer}] figures of a reading
  def reading(values) = Array.new(Box::FIGURES.size) { |at| values.fetch(Box::FIGURES[at], UNKNOWN) }.pack("Q<*")

  def event(label, started, ended: 0) = [ended, started, 7, 1000, ended.zero? ? UNKNOWN : 3000, 10, ended.zero? ? UNKNOWN : 30].pack("Q<7") + label

  def record(payload, number: 1, time: 1_700_000_000_000_000_000)
    rest = [payload.bytesize, number, time].pack("L<Q<Q<") + payload
    [Zlib.crc32(rest)].pack("L<") + rest
  end

  def put(bytes, table, index, record, shift = 0)
    offset, slot, = PLACES.fetch(table)
    bytes[offset + (index * slot) + shift, record.bytesize] = record
  end

  # @return [String] a file with something in each table
  def whole
    bytes = ("\0" * Box::BYTES).b
    put(bytes, :head, 0, record("culet-blackbox 1\npid 42\nparent 1\nprogram app.rb\ngroup_kills /none\n"))
    put(bytes, :seconds, 1, record(reading(resident_bytes: 1 << 20, malloc_used_bytes: 1 << 19, group_charged_bytes: 900, group_limit_bytes: 1000)))
    put(bytes, :fast, 0, record(reading(resident_bytes: 2 << 20, malloc_used_bytes: 1 << 19, group_charged_bytes: 950, group_limit_bytes: 1000),
                                time: 1_700_000_000_500_000_000))
    put(bytes, :running, 5, record(event("endpoint=GET /x", 1_700_000_000_100_000_000), number: 9))
    put(bytes, :running, 5, record("endpoint=x#show", number: 9), 184)
    put(bytes, :finished, 0, record(event("job=Y", 1_700_000_000_000_000_000, ended: 1_700_000_000_200_000_000), number: 8))
    put(bytes, :notes, 1, record("#{[512].pack("Q<")}step trim"))
    put(bytes, :profile, 1, record(PROFILE))
    bytes
  end

  def read(bytes) = Box.new(bytes, "a file")

  def everything(bytes)
    found = findings(read(bytes))
    [Culet::Autopsy::Document.new(found).to_h, Culet::Autopsy::Table.new(found).to_s, Culet::Autopsy::Summary.new(found).lines]
  end

  def test_a_whole_file
    document, table, summary = everything(whole)
    assert_equal 42, document["pid"]
    assert_equal 2 << 20, document["rss_bytes"]
    assert_equal document["rss_bytes"], document["levels"].values.sum
    assert_equal [950, 1000], document.values_at("used_bytes", "limit_bytes")
    assert_equal [%w[endpoint=x#show], %w[job=Y]], %w[running finished].map { |key| document[key].map { |one| one["label"] } }
    assert_equal [2000, 20], document["finished"].first.values_at("growth_bytes", "objects")
    assert_equal [["step", "trim", 512]], document["notes"].map { |one| one.values_at("kind", "text", "bytes") }
    assert_equal [["/app/a.rb:10", 163_840]], document["profile"]["lines"].map { |one| one.values_at("name", "bytes") }
    assert_equal 200_000, document["profile"]["total_bytes"]
    assert_includes table, "/app/a.rb:10"
    assert_equal 3, summary.size
    assert_includes summary.first, "probably killed by the kernel, because the last figures were at 95 % of the limit"
  end

  def test_an_event_in_both_tables_has_ended
    bytes = whole
    put(bytes, :finished, 1, record(event("job=Z", 1_700_000_000_000_000_000, ended: 1_700_000_000_300_000_000), number: 9))
    assert_empty(read(bytes).events.reject(&:ended_at))
  end

  def test_a_label_of_another_event_is_not_taken
    bytes = whole
    put(bytes, :running, 5, record("endpoint=other", number: 8), 184)
    assert_includes read(bytes).events.map(&:label), "endpoint=GET /x"
  end

  def test_the_older_profile_is_taken_where_the_newer_is_damaged
    bytes = whole
    put(bytes, :profile, 0, record(PROFILE.sub("S m 1", "S m 7"), number: 2))
    assert_equal 163_840, findings(read(bytes)).lines.first.bytes
    bytes = whole
    newer = record(PROFILE, number: 2)
    newer.setbyte(40, newer.getbyte(40) ^ 1)
    put(bytes, :profile, 0, newer)
    assert_equal 163_840, findings(read(bytes)).lines.first.bytes
  end

  def test_what_is_no_box_is_refused
    { "" => /is not a black box/, "x" * 100 => /is not a black box/, "\0" * Box::BYTES => /is not a black box/,
      "\xff" * Box::BYTES => /is not a black box/, "#{whole}x" => /is not a black box/ }.each do |bytes, message|
      assert_match(message, assert_raises(Culet::Error) { read(bytes) }.message)
    end
  end

  def test_texts_cannot_move_the_cursor
    bytes = whole
    put(bytes, :head, 0, record("culet-blackbox 1\npid 42\nprogram \e[2J\u202e\xff\n".b))
    put(bytes, :running, 5, record(event("\e]0;x\a\n", 1_700_000_000_100_000_000), number: 10))
    document, table, summary = everything(bytes)
    refute_match(/[\e\a\u202e]/, table + summary.join)
    assert_equal "?]0;x??", document["running"].first["label"]
  end

  # Any number of bytes at any place, with checksums that fit: the reader ends with a result or with one sentence.
  def test_damaged_files
    seed = Random.new_seed
    random = Random.new(seed)
    good = whole
    survived = 0
    DAMAGES.times do |round|
      everything(damage(good.dup, random))
      survived += 1
    rescue Culet::Error => e
      assert_match(/\Aa file /, e.message)
    rescue StandardError => e
      flunk "seed #{seed}, round #{round}: #{e.full_message}"
    end
    assert_operator survived, :>, DAMAGES / 4
  end

  def test_a_file_that_may_not_be_followed
    link = File.join(@folder, "link")
    File.write(File.join(@folder, "file"), whole)
    File.symlink(File.join(@folder, "file"), link)
    system("mkfifo", File.join(@folder, "pipe"), exception: true)
    { link => "symbolic link", File.join(@folder, "pipe") => "not a file", File.join(@folder, "none") => "no such file" }.each do |path, words|
      out, err, status = run_culet("autopsy", path)
      assert_equal ["", 1, 1], [out, status.exitstatus, err.lines.size]
      assert_includes err, words
    end
  end

  # A limit of 0 is what a control group may have.
  def test_a_limit_of_nothing
    bytes = whole
    put(bytes, :fast, 0, record(reading(resident_bytes: 1 << 20, group_charged_bytes: 950, group_limit_bytes: 0), time: 1_700_000_000_500_000_000))
    document, table, summary = everything(bytes)
    assert_nil document["limit_bytes"]
    assert_includes table, "without a limit, used 950 bytes"
    refute_match(/ of 0/, summary.first)
  end

  def test_notes_without_bytes_have_no_column_for_them
    bytes = whole
    assert_match(/^limit or step|at +limit or step +bytes/, everything(bytes)[1])
    put(bytes, :notes, 1, record("#{[90 << 20].pack("Q<")}limit setting"))
    assert_match(/limit: setting +90 MiB$/, everything(bytes)[1]) # as in the sentence on the cause
    put(bytes, :notes, 1, record("#{[(1 << 64) - 1].pack("Q<")}step trim"))
    assert_match(/at +limit or step$/, everything(bytes)[1])
  end

  # 950 of 1,000 are charged, and 700 of them can be taken back: this was not the limit's doing.
  def test_what_the_kernel_can_take_back_is_not_in_use
    bytes = whole
    figures = { resident_bytes: 100, group_charged_bytes: 950, group_reclaimable_bytes: 700, group_limit_bytes: 1000 }
    put(bytes, :seconds, 1, record(reading(figures)))
    put(bytes, :fast, 0, record(reading(figures), time: 1_700_000_000_500_000_000))
    document, table, summary = everything(bytes)
    assert_equal 250, document["used_bytes"]
    [table, summary.join].each { |text| refute_includes text, "killed by the kernel" }
  end

  # In a folder that all may write to, anyone's boxes may name any path as the control group's.
  def test_paths_that_other_users_have_written_are_not_opened
    skip "acting as two users takes root" unless Process.euid.zero?
    File.chmod(0o1777, @folder)
    File.mkfifo(File.join(@folder, "pipe"))
    File.symlink("/dev/zero", File.join(@folder, "link"))
    paths = [File.join(@folder, "pipe"), "/dev/zero", File.join(@folder, "link")]
    # As from a container, whose root is this one.
    paths.each_with_index { |path, index| shared_box(index, path, owner: 0) }
    paths.each_with_index { |path, index| shared_box(index + 3, path, owner: 65_534) }
    File.mkfifo(box_path(6))
    File.symlink("/dev/zero", box_path(7))
    File.symlink(box_path(3), box_path(8))
    out, err, status = run_boxed("puts 'done'", patience: 60)
    assert_equal ["done\n", true], [out, status.success?], err
    assert_equal %w[0 1 2], err.scan(/process 42(\d)/).flatten.sort
    refute_match(/cannot be read/, err)
    out, = assert_culet_success("autopsy", @folder, "--all", "--json")
    assert_equal [nil], JSON.parse(out)["autopsies"].map { |one| one.dig("cause", "group_kills") }.uniq
  end

  def test_several_files_are_all_told_of
    2.times { |number| File.binwrite(box_path(number), whole) }
    assert_equal [42, 42], autopsy(box_path(0), box_path(1))["autopsies"].map { |one| one["pid"] }
    assert_equal 42, autopsy(box_path(0))["pid"]
  end

  def test_wrong_usage
    { [] => 2, ["--kernel", "x"] => 2, [@folder] => 1 }.each { |words, number| assert_sentence(//, "autopsy", *words, status: number) }
  end

  private

  def box_path(number) = File.join(@folder, "culet-42#{number}-#{"0" * 12}.blackbox")

  def shared_box(number, group_kills, owner:)
    head = ["culet-blackbox 1", "pid 42#{number}", "program app.rb", "boot #{File.read("/proc/sys/kernel/random/boot_id").strip}",
            "group_kills #{group_kills}", ""]
    bytes = whole
    put(bytes, :head, 0, record(head.join("\n")))
    put(bytes, :fast, 0, record(reading(resident_bytes: 1 << 20, group_kills: 0), time: 1_700_000_000_500_000_000))
    File.binwrite(box_path(number), bytes)
    File.chown(owner, owner, box_path(number))
    File.chmod(0o644, box_path(number))
  end

  def damage(bytes, random)
    (1 + random.rand(4)).times do
      table = PLACES.keys.sample(random: random)
      offset, slot, slots = PLACES.fetch(table)
      at = offset + (random.rand(slots) * slot)
      case random.rand(3)
      when 0 then bytes[at + random.rand(slot), 8] = random.bytes(8)
      when 1 then bytes[at, slot] = bytes[PLACES.values.sample(random: random).first, slot].ljust(slot, "\0")[0, slot]
      else payload(bytes, table, at, slot, random)
      end
    end
    random.rand(200).zero? ? bytes.byteslice(0, random.rand(Box::BYTES)) : bytes
  end

  # A record whose checksum fits, with bytes or numbers that do not.
  def payload(bytes, table, at, slot, random)
    text = [PROFILE, reading({}), event("x", random.rand(1 << 63)), random.bytes(random.rand(300)), "step x", ""].sample(random: random).b
    random.rand(3).times { text[random.rand([text.bytesize, 1].max), 1] = random.bytes(1) unless text.empty? }
    numbers = [1, random.rand(1 << 64), random.rand(100)]
    one = record(text.byteslice(0, slot - 24), number: numbers.sample(random: random), time: random.rand(2).zero? ? random.rand(1 << 64) : 1_700_000_000_000_000_000)
    put(bytes, table, 0, one, at - PLACES.fetch(table).first)
  end
end
