# frozen_string_literal: true

require_relative "verb_helper"

# The command line, and profiles that were saved.
class ProfileVerbTest < Minitest::Test
  include ProfileVerbHelper

  # A profile of a program that keeps 1,000 strings, written once.
  def self.saved
    @saved ||= new("saved").send(:save, TestHelper.lasting_folder)
  end

  def test_wrong_usage
    { [] => /no process given/, ["1", "--", "true"] => /not both/, ["--"] => /no command given/, ["--for", "1s", "--", "true"] => /--for cannot be used/,
      %w[1 --view dead] => /invalid argument: --view dead/, %w[1 --by colour] => /invalid argument: --by colour/, %w[1 --top 0] => /--top takes a whole number/,
      %w[1 --sample 5x] => /--sample takes a number of bytes/, %w[1 --sample 0] => /--sample takes/, %w[1 --every 1m] => /--every needs --out-dir or --push/,
      %w[1 --keep 3] => /--keep needs --out-dir/, %w[1 --push x] => /--push takes an address/, %w[1 --app x] => /--app needs --push/,
      %w[1 --out-dir x --html y] => /--html cannot be combined/, %w[1 --out-dir x --every 0.1s] => /at least 1s/,
      %w[--out-dir x README.md] => /continuous mode needs processes or a command/, ["README.md", "1"] => /processes or files, not both/,
      %w[README.md --for 1s] => /--for needs a process/, %w[README.md --collect] => /--collect needs a process/,
      %w[--collect -- true] => /--collect needs a process/, ["0"] => /"0" is not a process number/ }.each do |words, sentence|
      assert_refused(sentence, *words, status: 2)
    end
  end

  def test_files_that_are_no_profiles
    folder = new_folder
    { "empty" => "", "text" => "hello\n", "other" => "culet-profile 2\nE 1\n", "binary" => "\xff\x00\n" * 100,
      "cut" => File.read(saved).lines.first(20).join }.each do |name, text|
      path = File.join(folder, name)
      File.binwrite(path, text)
      assert_refused(/#{path}/, path)
      assert_refused(/#{path}/, saved, "--base", path)
    end
    assert_refused(/there is no file #{folder}, and no process|#{folder} is a directory|#{folder}/, "#{folder}/", status: 1)
    ["#{folder}/none.profile", "none.profile"].each { |path| assert_refused(/there is no file #{path}/, path) }
    assert_refused(%r{cannot write /nonexistent/x}, saved, "--html", "/nonexistent/x")
  end

  def test_the_keys_that_others_rely_on
    document = profile(saved)
    assert_equal ["live", SAMPLE], document.values_at("view", "sample_bytes")
    site = document["sites"].first
    assert_equal [], %w[bytes low_bytes high_bytes blocks class frames] - site.keys
    assert_equal [%w[file gem library line method]], site["frames"].map { |frame| frame.keys.sort }.uniq
    bytes = document["sites"].map { |one| one["bytes"] }
    assert_equal bytes.sort.reverse, bytes
    assert_kept(profile(saved, "--by", "line"))
  end

  def test_every_view_and_kind
    %w[live allocated peak growth].each { |view| assert_equal view, profile(saved, "--view", view)["view"] }
    %w[line method file gem class library label].each do |kind|
      assert_equal [], rows(profile(saved, "--by", kind, "--view", "allocated")).reject { |row| row.keys.intersect?(%w[name bytes]) }
    end
  end

  def test_files_of_other_tools
    folder = new_folder
    names = { "html" => "page.html", "pprof" => "p.pb.gz", "speedscope" => "s.json", "firefox" => "f.json", "collapsed" => "c.txt" }
    words = names.flat_map { |option, name| ["--#{option}", File.join(folder, name)] }
    out, err, status = run_culet("profile", saved, *words, "--out", File.join(folder, "report.txt"), env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, out], err
    written = err.scan(/^culet: wrote (\S+)$/).flatten.map { |path| File.basename(path) }
    assert_equal [*names.values, "report.txt"].sort, written.sort
    written.each { |name| assert_operator File.size(File.join(folder, name)), :>, 100, name }
    %w[s.json f.json].each { |name| assert JSON.parse(File.read(File.join(folder, name))) }
  end

  # What two equal profiles differ by is nothing; what is saved again is the same.
  def test_two_profiles_as_a_difference
    folder = new_folder
    more = save(File.dirname(saved), 3_000)
    document = profile(more, "--base", saved, "--by", "line")
    row = rows(document).find { |one| one["name"].end_with?("app.rb:#{KEEPING_LINE}") }
    assert_in_delta 2 * KEPT_BYTES, row["bytes"], 0.5 * KEPT_BYTES
    copy = File.join(folder, "copy.profile")
    same = profile(saved, "--base", saved, "--save", copy)
    assert_equal 0, same["total_bytes"]
    assert_equal File.binread(saved), File.binread(copy)
    assert_equal 0o600, File.stat(copy).mode & 0o777
  end

  private

  def saved = self.class.saved

  # @return [String] path of a profile of a program that keeps strings
  def save(folder, count = 1_000)
    path = File.join(folder, "#{count}.profile")
    command = [RbConfig.ruby, program(folder, "keep(#{count}); 3.times { GC.start }")]
    _, err, status = run_culet("profile", "--sample", "16k", "--save", path, "--", *command, env: TestHelper::NEUTRAL)
    raise err unless status.success?

    path
  end
end
