# frozen_string_literal: true

require_relative "requires_helper"

# The verb: what it prints, writes, refuses.
class RequiresVerbTest < Minitest::Test
  include RequiresHelper

  {
    [] => /no command given/, ["--"] => /no command given/, ["x", "--", "true"] => /not both/,
    ["--diff", "a"] => /--diff takes two/, %w[a b] => /one file at a time/,
    ["--sort", "beauty", "--", "true"] => /invalid argument/, ["--top", "0", "--", "true"] => /--top takes/, ["--nosuch", "--", "true"] => /invalid option/
  }.each do |words, message|
    define_method(:"test_wrong_usage_#{words.join("_")}") do
      out, err, status = run_culet("requires", *words)
      assert_equal [2, "", 1], [status.exitstatus, out, err.lines.size], err
      assert_match message, err
    end
  end

  # The library of that name speeds requires up.
  def test_the_old_name_of_the_verb_works_and_names_the_new_one
    said = "culet: `culet require` is now `culet requires`; the next minor version removes the old name\n"
    out, err = assert_culet_success("require", "--json", "--", *ruby("-e", "puts :spoken"), env: TestHelper::NEUTRAL)
    assert_equal ["culet require", "#{said}spoken\n"], [JSON.parse(out)["kind"], err]
    new, = run_culet("requires", "--unused", "--help")
    assert_equal [new, said], run_culet("require", "--unused", "--help").first(2)
    assert_equal [new, said], run_culet("help", "require", "--unused").first(2)
  end

  def test_the_table
    write("a.rb" => "require 'b'\nbegin; require 'nowhere_to_be_found'; rescue LoadError; end; require 'b'", "b.rb" => "B = 1")
    out, = assert_culet_success("requires", "--no-color", "--", *ruby("--disable-gems", "-e", "require 'a'; puts :spoken"), env: TestHelper::NEUTRAL)
    assert_match(/\Aspoken\n/, out)
    assert_match(/: 2 files required in [\d.,]+ ms of [\d.,]+$/, out)
    assert_match(/^[\d,]+ file-system calls for lookups, [\d,]+ of them failed; [\d.]+ [kM]B of compiled code at the end$/, out)
    assert_match(/^1 require of loaded features took/, out)
    assert_match(/^gem +self ms +cpu ms +objects +retained +retained kB/, out)
    assert_match(/^the program +[\d.]+/, out)
    assert_match(/^#{path("a.rb")} +[\d.]+/, out)
    assert_match(/^1 failed require:\n  nowhere_to_be_found: LoadError \([\d.]+ ms\)$/, out)
    refute_includes out, "\e"
  end

  def test_the_tree_of_a_file_that_was_written
    write("a.rb" => "require 'b'; sleep 0.02", "b.rb" => "sleep 0.02")
    record(*ruby("-e", "require 'a'"))
    out, err, = run_culet("requires", "--tree", path("report.json"))
    assert_empty err
    assert_match(/^tree +total ms.*\n.*\na +[\d.]+.*\n  b +[\d.]+/, out)
  end

  def test_a_file_whose_failed_calls_were_not_counted
    document = record(*ruby("-e", "require 'json'"))
    document["features"].each { |one| one.update("syscalls" => 1, "failed_syscalls" => nil) }
    File.write(path("report.json"), JSON.generate(document))
    out, = assert_culet_success("requires", path("report.json"))
    refute_includes out, "of them failed"
  end

  def test_lists_are_sorted_and_cut
    write((1..5).to_h { |number| ["f#{number}.rb", "F#{number} = #{("x" * number * 10_000).dump} * 2"] })
    record(*ruby("-e", "(1..5).each { |number| require \"f\#{number}\" }"))
    out, = run_culet("requires", "--sort", "malloc", "--top", "2", path("report.json"))
    assert_equal [path("f5.rb"), path("f4.rb")], out.scan(/^#{Regexp.escape(@folder)}\S+/)
    assert_includes out, "3 files more not shown (--top)"
  end

  def test_json_on_stdout_is_one_document
    out, err = assert_culet_success("requires", "--json", "--", *ruby("-e", "puts :spoken"), env: TestHelper::NEUTRAL)
    assert_includes err, "spoken\n"
    assert_equal "culet require", JSON.parse(out)["kind"]
  end

  def test_the_difference_of_two_runs
    write("a.rb" => "A = 'a' * 1000", "b.rb" => "B = Array.new(500) { |one| one.to_s * 30 }")
    absent = "begin; require 'absent'; rescue LoadError; end"
    before = record(*ruby("-e", "#{absent}; require 'a'"))
    FileUtils.mv(path("report.json"), path("before.json"))
    after = record(*ruby("-e", "#{absent}; require 'a'; require 'b'"))
    out, = assert_culet_success("requires", "--diff", "--json", path("before.json"), path("report.json"))
    document = JSON.parse(out)
    b = document["files"].find { |one| one["path"] == path("b.rb") }
    assert_equal ["after", feature(after, "b.rb")["objects"]], [b["only"], b.dig("objects", "grown")]
    assert_equal before["features"].sum { |one| one["objects"] }, document.dig("total", "objects", "before")
    out, = run_culet("requires", "--diff", path("before.json"), path("report.json"))
    assert_match(/^#{path("b.rb")} \(new\) /, out)
    assert_match(/^before: .*, 1 file in .*\nafter: .*, 2 files in /, out) # as the reports say
    assert_match(/^objects +\d[\d,]* +\d[\d,]* +\+\d/, out)
  end

  def test_bad_input_is_one_sentence
    File.write(path("no.json"), "{}")
    { ["--html", "/no/such/page.html", "--", "true"] => /does not exist/,
      ["--out", @folder, "--", "true"] => /is a directory/, ["--", "true"] => /nothing was recorded: true ran no Ruby program/,
      [path("no.json")] => /is not a document of `culet requires --json`/,
      [path("nowhere.json")] => /there is no file .*nowhere\.json/ }.each do |words, message|
      out, err, status = run_culet("requires", *words, env: TestHelper::NEUTRAL)
      assert_equal [1, "", 1], [status.exitstatus, out, err.lines.size], err
      assert_match message, err
    end
    out, err, status = run_culet("requires", "--", "no-such-program")
    assert_equal ["", "culet: cannot run no-such-program: no such program\n", 127], [out, err, status.exitstatus]
  end

  def test_a_signal_is_the_commands
    write("waits.rb" => "trap(:TERM) { puts :caught; exit 3 }; puts :up; $stdout.flush; sleep")
    with_program(*culet_command, "requires", "--json", "--out", path("report.json"), "--", *ruby("-e", "require 'waits'"),
                 env: TestHelper::NEUTRAL, err: path("err")) do |pid|
      Process.kill(:TERM, pid)
      assert_settles("the report is written") { File.exist?(path("report.json")) }
    end
    document = JSON.parse(File.read(path("report.json")))
    assert_equal [3, "SystemExit"], [document["exit_status"], feature(document, "waits.rb")["error"]]
  end
end
