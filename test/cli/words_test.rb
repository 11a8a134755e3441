# frozen_string_literal: true

require "test_helper"
require "culet/cli"
require "culet/cli/manual"
require "culet/system/executables"

# What helps a user to find the right words: help, hints, the manual and the shell's completion.
class CliWordsTest < Minitest::Test
  def test_help_of_a_verb
    Culet::CLI::VERBS.each_key { |verb| assert_equal culet(verb, "--help"), culet("help", verb), verb }
    assert_equal culet("cow", "experiment", "--help"), culet("help", "cow", "experiment")
    assert_equal culet("requires", "--unused", "--help"), culet("help", "requires", "--unused")
    assert_equal culet("--help"), culet("help")
    [%w[help cow nonsense], %w[help report map]].each do |words|
      assert_equal ["", "culet: `culet help` takes one verb, e.g. `culet help report`\n", 2], culet(*words)
    end
  end

  def test_version
    assert_equal ["culet #{Culet::VERSION}\n", "", 0], culet("version")
    assert_equal culet("--version"), culet("version")
  end

  def test_did_you_mean
    { %w[reprot 1] => "there is no verb \"reprot\"; did you mean `report`?", %w[help snapshto] => "there is no verb \"snapshto\"; did you mean `snapshot`?",
      %w[vesrion] => "there is no verb \"vesrion\"; did you mean `version`?", %w[qqqq] => "there is no verb \"qqqq\"; `culet --help` lists them",
      %w[trace --alocator x -- ls] => "invalid option: --alocator; did you mean `--allocator`?", %w[cow --max-privte=3 1] => "invalid option: --max-privte=3; did you mean `--max-private`?",
      %w[report --no-colour] => "invalid option: --no-colour; did you mean `--no-color`?", %w[report -x] => "invalid option: -x; see `culet report --help`",
      %w[completion bsh] => "there is no completion for \"bsh\"; did you mean `bash`?" }.each do |words, sentence|
      assert_equal ["", "culet: #{sentence}\n", 2], culet(*words)
    end
  end

  def test_a_command_without_the_dashes
    { %w[run ruby -e 1] => "run -- ruby -e 1", %w[run --allocator glibc ruby -e 1] => "run --allocator glibc -- ruby -e 1", %w[trace -o t ruby job.rb] => "trace -o t -- ruby job.rb",
      %w[compare ruby -e 1] => "compare -- ruby -e 1", %w[requires ruby -e 1] => "requires -- ruby -e 1", %w[requires --unused ruby -e 1] => "requires --unused -- ruby -e 1",
      %w[strings ruby -e 1] => "strings -- ruby -e 1", %w[cow ruby -e 1] => "cow -- ruby -e 1",
      %w[strings ruby culet-no-such.rb] => "strings -- ruby culet-no-such.rb" }.each do |words, advised|
      out, err, status = culet(*words)
      assert_equal ["", 2], [out, status], words.inspect
      assert_includes err, "write the command after `--`: `culet #{advised}`"
    end
    refute_includes culet("report", "ruby", "-e", "1")[1], "behind `--`" # it takes none
    refute_includes culet("requires", "--sort", "env", "boot.json")[1], "behind `--`" # what an option takes is no command
  end

  # It finds nothing where the server is called ruby3.1.
  def test_nothing_advises_pgrep
    texts = Culet::CLI::VERBS.keys.map { |verb| culet(verb, "--help").first }
    texts.push(culet("requires", "--unused", "--help").first, *Dir["#{ROOT}/{README.md,docs/guide/*.md}"].map { |path| File.read(path, encoding: "UTF-8") })
    %w[report cow map snapshot].each { |verb| texts << culet(verb)[1] }
    texts.each { |text| refute_includes text, "pgrep" }
  end

  # Each option of a verb stands in its page, and nothing of this machine.
  def test_the_manual_has_every_option
    pages = Culet::CLI::Manual.new.pages
    assert_operator pages.size, :>, Culet::CLI::VERBS.size
    Culet::CLI::Outline.all.each do |outline|
      page = pages.fetch("culet-#{outline.name.gsub(/[ -]+/, "-")}.1").gsub("\\-", "-").gsub(/\\f./, "")
      outline.options.each { |option| assert_match(/^#{Regexp.escape(option.flags.join(", "))}/, page, outline.name) }
      refute_includes page, ROOT
      refute_match(%r{(?<!/usr/local)/lib/|is not installed}, page)
    end
  end

  def test_the_manual_is_what_groff_understands
    skip "groff is not installed here" unless Culet::Executables.find("groff")
    Culet::CLI::Manual.new.pages.each do |name, text|
      out, err, status = run_program("groff", "-ww", "-man", "-Tutf8", stdin: text)
      assert_equal ["", true], [err, status.success?], name
      assert_match(/^SYNOPSIS$/, out.gsub(/.\x08/, ""))
    end
  end

  def test_completion_in_bash
    { "culet rep" => %w[report replay].sort, "culet help sna" => %w[snapshot], "culet report --st" => %w[--stop], "culet requires --sort f" => %w[failed],
      "culet replay t --touch " => %w[none page line all check].sort, "culet compare thr" => %w[threads], "culet cow exp" => %w[experiment], "culet cow experiment --var" => %w[--variants],
      "culet requires --unused --t" => %w[--top], "culet completion " => %w[bash fish zsh], "culet report --no" => %w[--no-color], "culet run -- bas" => ["bash"] }.each do |line, expected|
      found = completed(line)
      expected == ["bash"] ? assert_includes(found, "bash") : assert_equal(expected, found.sort, line)
    end
  end

  # A process chooses what it is called: nothing of it is expanded by the shell.
  def test_completion_offers_no_names_of_processes
    refute_match(%r{pgrep|\bps\b|/proc}, %w[bash zsh fish].map { |shell| culet("completion", shell).first }.join)
  end

  def test_completion_in_zsh_and_fish
    checks = { "zsh" => ["-n"], "fish" => ["--no-execute"] }.select { |shell,| Culet::Executables.find(shell) }
    skip "neither zsh nor fish is installed here" if checks.empty?
    Dir.mktmpdir do |directory|
      checks.each do |shell, words|
        File.write("#{directory}/#{shell}", culet("completion", shell).first)
        out, err, status = run_program(shell, *words, "#{directory}/#{shell}", env: { "HOME" => directory })
        assert_equal ["", "", 0], [out, err, status.exitstatus]
      end
      if checks.key?("fish")
        out, err, = run_program("fish", "-c", "source #{directory}/fish; complete -C 'culet repo'; complete -C 'culet requires --sort ret'",
                                env: { "HOME" => directory })
        assert_match(/\Areport\tshow where the memory.*\nretained\b/, out, err)
      end
      if checks.key?("zsh")
        script = "autoload -Uz compinit; compinit -u -D; source #{directory}/zsh; print -r -- $_comps[culet]"
        assert_equal "_culet\n", run_program("zsh", "-f", "-c", script, env: { "HOME" => directory }).first
      end
    end
  end

  def test_completion_has_every_option
    scripts = %w[bash zsh fish].to_h { |shell| [shell, culet("completion", shell).first] }
    Culet::CLI::Outline.all.flat_map { |outline| outline.options.flat_map(&:flags) }.uniq.each do |flag|
      assert_match(/[ '=]#{flag}['\s]/, scripts["bash"])
      assert_match(/'#{flag}\[/, scripts["zsh"])
      assert_match(flag.start_with?("--") ? / -l #{flag[2..]} / : / -s #{flag[1..]} /, scripts["fish"])
    end
  end

  private

  # @return [Array<String>] what bash offers at the end of a line
  def completed(line)
    words = line.split(" ", -1)
    script = "eval \"$COMPLETION\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _culet; printf '%s\\n' \"${COMPREPLY[@]}\""
    out, err = assert_success("bash", "--norc", "-c", script, "bash", *words, env: { "COMPLETION" => @bash ||= culet("completion", "bash").first })
    assert_empty err
    out.split("\n").reject(&:empty?)
  end
end
