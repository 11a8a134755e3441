# frozen_string_literal: true

require "agent/agent_helper"
require_relative "../../boot/lib/report/unused"
require_relative "../../boot/lib/report/unused_table"
require "culet/tools/strings"

# Processes that answer as agents do, and mean no good: whatever they say is a report or a sentence, in bounded room.
class AgentHostileTest < Minitest::Test
  include AgentHelper

  END_OF_STRINGS = { "kind" => "strings", "strings" => 0, "fork_seconds" => 0.1 }.freeze
  # struct culet_string_record: bytes, flags, address, root, kind, length, held, site, slot, content_bytes
  LAYOUT = "LLQQQQQQLL"
  FIELDS = %i[bytes flags address root kind length held site slot content_bytes].freeze
  EMBEDDED = 1
  TOLD = 1 << 5
  DIGEST = 1 << 6
  VEILED = 1 << 7
  ODD = [nil, true, "", "\0", -1, 1.5, 2**64, 10**30, [], [nil], {}, { "a" => -1 }, [[1, 2, 3]]].freeze

  # Goes on for ever, with 8 MB each time.
  def test_strings_are_bounded_by_what_the_process_has
    with_text("'x' * (200 << 20)") do |pid|
      assert_match(/sent an answer that this version of culet does not know/, refusal(pid))
    end
  end

  def test_strings_that_contradict_themselves
    { { "strings" => 9 } => /is inconsistent/, { "strings" => "9" } => /strings is not a whole number/, { "fork_seconds" => nil } => /fork_seconds is not a time/,
      { "kind" => 3 } => /kind is not/ }.each do |wrong, message|
      with_text(JSON.generate(END_OF_STRINGS.merge(wrong)).ljust(256).inspect) { |pid| assert_match message, refusal(pid), wrong }
    end
    ["", "\n", "[]\n", "\xff\n".b, "{}\n"].each { |text| with_text(text.inspect) { |pid| refusal(pid) } }
  end

  def refusal(pid)
    Culet::Strings::RecordFile.open { |file| assert_raises(Culet::Error) { Culet::Strings::Live.new(pid).read(file) }.message }
  end

  # The last of a file that fills its pages: what it says to have lies behind them.
  def test_records_that_contradict_themselves
    good = { flags: EMBEDDED | TOLD, length: 16, held: 40, slot: 40, content_bytes: 16, kind: 1 }
    assert_equal "1", analysed(good)
    [{ flags: TOLD | DIGEST, content_bytes: 0 }, { flags: TOLD | DIGEST, content_bytes: 8 }, { flags: TOLD | DIGEST | VEILED, content_bytes: 8 },
     { flags: TOLD | VEILED, content_bytes: 16 }, { length: 17 }, { length: 2**31 }, { length: 2**63 }, { held: 39 }, { held: 2**63 }, { slot: 41 },
     { flags: EMBEDDED, content_bytes: 16 }, { flags: TOLD | (1 << 10) }, { flags: TOLD | (1 << 20) }, { bytes: 0 }, { bytes: 2**31 }, { bytes: 77 },
     { content_bytes: 2**32 - 1 }].each do |wrong|
      assert_match(/is damaged|not enough memory/, analysed(good.merge(wrong)), wrong.inspect)
    end
  end

  # Each byte of true records, changed: a report or a sentence.
  def test_changed_records
    bytes = ""
    with_agent("$kept = Array.new(50) { |i| 'a text that is long enough to be shared ' + (i % 7).to_s * 20 }; #{SAY_UP}; sleep") do |pid|
      Culet::Strings::RecordFile.open do |file|
        Culet::Strings::Live.new(pid).read(file)
        bytes = File.binread(file.path)
      end
    end
    script = <<~RUBY
      require "culet/tools/strings"
      whole = STDIN.binmode.read
      random = Random.new(1)
      tally = Hash.new(0)
      Dir.mktmpdir do |folder|
        path = File.join(folder, "records")
        at = 0
        heads = []
        while at < whole.bytesize
          heads << at
          at += whole.byteslice(at, 4).unpack1("L")
        end
        600.times do
          changed = whole.dup
          (1 + random.rand(3)).times { changed.setbyte([heads.sample(random: random) + random.rand(72), whole.bytesize - 1].min, [0, 1, 255, 128, random.rand(256)].sample(random: random)) }
          File.binwrite(path, changed)
          tally[begin
            Culet::Strings.analyse(path, 10, true)
            Culet::Strings.site_names(path)
            :report
          rescue Culet::Error
            :sentence
          end] += 1
        end
      end
      p tally.keys.sort
    RUBY
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rtmpdir", "-e", script,
                                   env: TestHelper::NEUTRAL, stdin: bytes.byteslice(0, whole_records(bytes, 40_000)))
    assert_equal ["[:report, :sentence]\n", "", true], [out, err, status.success?]
  end

  def test_counts_of_another_shape
    whole = { "kind" => "objects", "seconds" => 0.1, "complete" => true, "count" => 1, "why" => "" }
    (whole.keys - ["kind"]).product([nil, [], "x\0", {}]).each do |key, odd|
      with_answer("#{JSON.generate(whole.merge(key => odd))}\n") { |inquiry| assert_match(/is damaged: #{key} is not/, assert_raises(Culet::Error) { inquiry.call }.message) }
    end
  end

  # ---- code that never ran ----

  ANSWER = { "kind" => "culet unused", "version" => 1, "pid" => 5, "parent_pid" => 1, "program" => "x", "ruby" => "ruby",
             "since" => "start", "seconds" => 0.1, "heard" => true,
             "files" => [{ "path" => "/a.rb", "bytes" => 100, "count" => 3, "told" => true, "untold_bytes" => 10,
                           "unused" => [[3, "idle", 40], [9, "block in idle", 20]] },
                         { "path" => "/b.rb", "bytes" => 50, "count" => 1, "told" => false }],
             "evaluated" => { "(eval)" => [10, 1] } }.freeze

  def test_answers_of_another_shape_are_a_sentence_or_a_report
    assert_equal :report, outcome(ANSWER)
    outcomes = mutations(ANSWER).map { |answer| outcome(answer) }
    assert_equal %i[report sentence], outcomes.uniq.sort
    ["", "[]", "{", "3", "[" * 200, "\xff", "{\"kind\":\"culet unused\"}"].each { |text| assert_equal :sentence, outcome_of(text), text }
  end

  def test_documents_of_another_shape_are_a_sentence_or_a_report
    in_directory do |folder|
      document = JSON.parse(JSON.generate(Culet::Boot::Unused.new([ANSWER]).to_h))
      outcomes = mutations(document).map do |odd|
        path = File.join(folder, "unused.json")
        File.write(path, JSON.generate(odd))
        shown(Culet::Boot::Unused.load(path))
      rescue Culet::Error
        :sentence
      end
      assert_equal %i[report sentence], outcomes.uniq.sort
    end
  end

  def test_an_answer_without_end
    with_text("'[' * (33 << 20)") do |pid|
      error = assert_raises(Culet::Error) { Culet::Boot::UnusedInquiry.new(pid).call }
      assert_match(/sent an answer that this version of culet does not know/, error.message)
    end
  end

  # Files that others wrote.
  def test_files_that_are_none
    in_directory do |folder|
      File.mkfifo("#{folder}/pipe")
      File.write("#{folder}/large", "x" * 1000)
      File.symlink("large", "#{folder}/link")
      read = ->(name, **options) { assert_raises(Culet::Error) { Culet::ForeignFile.read("#{folder}/#{name}", **options) }.message }
      assert_match(/pipe is not a file/, read.call("pipe"))
      assert_match(/link is a symbolic link/, read.call("link"))
      assert_match(/large is too large/, read.call("large", most_bytes: 999))
      assert_match(/large belongs to another user/, read.call("large", owners: [54_321]))
      assert_match(/cannot read .*none: no such file/, read.call("none"))
      assert_match(/is not a file/, assert_raises(Culet::Error) { Culet::ForeignFile.read("/dev/zero", owners: [0]) }.message)
      assert_equal 1000, Culet::ForeignFile.read("#{folder}/large", most_bytes: 1000).bytesize
    end
  end

  private

  # A process that calls itself an agent, and has an answer for each request. text: Ruby
  def with_text(text, &) = with_impostor("(text = #{text}).then { \"ok \#{text.bytesize}\\n\" + text.b }", &)

  def with_answer(text)
    inquiry = Culet::Agent::Inquiry.new(Process.pid)
    inquiry.instance_variable_get(:@conversation).define_singleton_method(:ask) { |*, **| text }
    yield inquiry
  end

  # @return [String] how many strings were found, or the sentence
  def analysed(fields)
    record = { address: 8, root: 0, site: 0, bytes: 72 + fields[:content_bytes] }.merge(fields)
    record[:bytes] = 88 if record[:bytes] > 10_000 && !fields.key?(:bytes)
    page = 65_536
    site = { bytes: page - 72 - 16, flags: 1 << 9, content_bytes: 0 } # fills the pages up to the last record
    bytes = [site, record].map { |one| one.values_at(*FIELDS).map(&:to_i).pack(LAYOUT).ljust([one[:bytes], page].min, "\0") }.join
    script = "begin; print Culet::Strings.analyse(ARGV[0], 10, true)[:places].values.sum { |sum| sum[:count] }; rescue Culet::Error => e; print e.message; end"
    in_directory do |folder|
      File.binwrite("#{folder}/records", bytes.byteslice(0, page))
      out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-rculet", "-e", script, "#{folder}/records", env: TestHelper::NEUTRAL)
      assert_equal [true, ""], [status.success?, err.lines.first(3).join]
      return out
    end
  end

  def whole_records(bytes, most)
    at = 0
    at += bytes.byteslice(at, 4).unpack1("L") while at < bytes.bytesize && at < most
    at
  end

  # The value with each of its parts, at any depth, replaced by odd ones or left out.
  def mutations(value)
    case value
    when Hash then value.flat_map { |key, one| [value.except(key), *(ODD + mutations(one)).map { |odd| value.merge(key => odd) }] }
    when Array then value.each_index.flat_map { |index| (ODD + mutations(value[index])).map { |odd| value.dup.tap { |copy| copy[index] = odd } } }
    else []
    end
  end

  def outcome(answer) = outcome_of(JSON.generate(answer))

  def outcome_of(text)
    shown(Culet::Boot::Unused.new([Culet::Boot::Unused.parse(text, name: "it"), ANSWER]).to_h)
  rescue Culet::Error => e
    assert_match(/\Ait is damaged: /, e.message)
    :sentence
  end

  def shown(document)
    JSON.generate(document)
    Culet::Boot::UnusedTable.new(document).to_s
    :report
  end
end
