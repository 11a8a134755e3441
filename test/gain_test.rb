# frozen_string_literal: true

require "cow/cow_helper"
require "culet/model/gain"
require "culet/tools/strings"

# What is worth a change, decided once for all commands.
class GainTest < Minitest::Test
  include CowHelper

  MB = 1_000_000

  def gain(...) = Culet::Gain.new(...)

  def test_both_share_and_bytes_count
    assert_equal :worth, gain(26 * MB, of: 100 * MB).verdict
    assert_equal :small, gain(2 * MB, of: 6 * MB).verdict
    assert_equal "2.00 MB (33 %)", gain(2 * MB, of: 6 * MB).to_s
    assert_equal ", less than is worth a change (4.00 MB)", gain(2 * MB, of: 6 * MB).remark
    assert_equal ", less than is worth a change (5 %, 50.0 MB)", gain(20 * MB, of: 1000 * MB).remark
    assert_equal "", gain(26 * MB, of: 100 * MB).remark
    assert_equal %i[worth small], %i[code setting].map { |kind| gain(MB, of: 3 * MB, kind: kind).verdict }
    assert_equal "0 bytes (0 %)", gain(0, of: 0).to_s
  end

  # Two readings of one process that differ a little give no opposite verdicts: what is close is called so, with the advice.
  def test_close_calls_are_said
    [3.9, 4.1].each do |megabytes|
      one = gain((megabytes * MB).to_i, of: 50 * MB)
      assert_equal [:close, true], [one.verdict, one.worth?]
      assert_match(/\A, about the least that is worth a change \(4\.00 MB\)\z/, one.remark)
    end
    verdicts = (1..200).map { |tenth| gain(tenth * MB / 10, of: 50 * MB).verdict }
    assert_equal %i[small close worth], verdicts.uniq
    verdicts.each_cons(2) { |pair| refute_equal %i[small worth], pair }
  end

  # A third of little is little: the reason is said, and it is not called nothing.
  def test_strings_say_why_not
    found = Culet::Strings::Findings.allocate
    found.define_singleton_method(:strings) { 10_000 }
    { duplicate_bytes: 200_000, suffix_bytes: 0, string_bytes: 625_000, capacity_slack_bytes: 0 }.each do |name, value|
      found.define_singleton_method(name) { value }
    end
    verdict = Culet::Strings::Verdicts.new(found).list.first
    assert_equal "little to gain", verdict.topic
    assert_match(/\Asharing would save 200 kB of 625 kB \(32\.0 %\): .*, less than is worth a change \(500 kB\)\z/, verdict.text)
  end

  # A worker that hardly unshared anything, and keeps much that a trim would return.
  LOOSE = "#{FORKS}fence = []\nfamily(1) { Array.new(40_000) { 'x' * 1_000 }.clear; fence << 'y' * 1_000; 3.times { GC.start } }".freeze

  # About half of it stays away.
  def test_what_a_trim_returns_is_not_called_less_than_it_is
    with_family(*RUBY, "-e", LOOSE.sub("40_000", "5_000"), env: { "MALLOC_ARENA_MAX" => "1" }) do |pid|
      worker = Culet::Processes::Tree.new(pid).pids.last
      text = trim(json("report", worker.to_s).fetch("verdicts")).fetch("text")
      assert_includes 4.0..5.99, text[/would return (\d+\.\d+) MB/, 1].to_f, text
      refute_match(/would return \d+\.\d+ MB \(\d+ %\), less/, text)
    end
  end

  def test_cow_and_report_agree
    with_family(*RUBY, "-e", LOOSE, env: { "MALLOC_ARENA_MAX" => "1" }) do |pid|
      worker = Culet::Processes::Tree.new(pid).pids.last
      report, cow = [json("report", worker.to_s), json("cow", pid.to_s, "--writes", "0")].map { |one| trim(one.fetch("verdicts")) }
      assert_equal report.fetch("remedy"), cow.fetch("remedy")
      assert_match(/\Areturn free memory after each major collection: saves \d+\.\d MB \(\d+ %\)\z/, cow.fetch("text"))
      assert_match(/\Amalloc_trim\(0\) would return \d+\.\d MB \(\d+ %\)/, report.fetch("text"))
      doctor = trim(json("doctor", worker.to_s).fetch("findings"))
      assert_equal "#{report.fetch("remedy")}; `culet explain #{worker}` says what it saves.", doctor["remedy"]
    end
  end

  private

  def trim(verdicts) = verdicts.find { |one| one["topic"] == "trim" }
end
