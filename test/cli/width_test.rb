# frozen_string_literal: true

require "test_helper"
require "io/console"
require "json"
require "pty"
require "timeout"
require "unicode/display_width"
require_relative "../compare/sampled"

# What is printed to a terminal fits it, and is as plain as the terminal asks for.
class CliWidthTest < Minitest::Test
  COLUMNS = [40, 80].freeze
  RUBY = [RbConfig.ruby, "--disable-gems"].freeze
  WORKERS = "$kept = Array.new(30_000) { |i| \"text \#{i}\" * 3 }; GC.start; reader, writer = IO.pipe; " \
            "2.times { fork { $0 = 'worker of some application'; $own = Array.new(20_000) { |i| \"own \#{i}\" }; writer.puts; sleep } }; " \
            "2.times { reader.gets }; #{WAITING}".freeze

  def test_tables_of_processes
    with_program(*RUBY, "-e", WORKERS) do |pid|
      in_folder do |folder|
        %w[a b].each { |name| assert_predicate run_culet("snapshot", pid.to_s, "--out", "#{folder}/#{name}.snapshot").last, :success? }
        COLUMNS.each do |columns|
          assert_fits(columns, "report", pid.to_s) { |text| assert_match(/^resident +\d/, text) }
          assert_fits(columns, "cow", pid.to_s) { |text| assert_match(/^\d+ worker/, text) }
          assert_fits(columns, "diff", "a.snapshot", "b.snapshot", chdir: folder)
          assert_fits(columns, "doctor", pid.to_s) { |text| assert_match(/^ok +allocator/, text) }
        end
        assert_fits(40, "report", pid.to_s, Process.pid.to_s)
        assert_fits(40, "cow", pid.to_s, "--every", "0.2", "--for", "0.6", "--writes", "0")
      end
    end
  end

  def test_tables_of_commands
    in_folder do |folder|
      File.write("#{folder}/heap.rb", "require 'objspace'; s = Array.new(9000) { 'a text of which there are many, many, many copies ' * 2 }; " \
                                      "ObjectSpace.dump_all(output: File.open('heap.json', 'w'))")
      [[*RUBY, "#{folder}/heap.rb"], [*culet_command, "requires", "--json", "--out", "boot.json", "--", RbConfig.ruby, "-e", "require 'json'; require 'net/http'"],
       [*culet_command, "requires", "--unused", "--json", "--out", "unused.json", "--", RbConfig.ruby, "-e", "require 'json'; require 'optparse'"],
       [*culet_command, "trace", "--", *RUBY, "-e", "1"]].each do |command|
        assert_predicate run_program(*command, env: NEUTRAL, chdir: folder).last, :success?
      end
      COLUMNS.each do |columns|
        assert_fits(columns, "strings", "heap.json", chdir: folder) { |text| assert_match(/^strings +/, text) }
        assert_fits(columns, "requires", "boot.json", chdir: folder) { |text| assert_match(/failed/, text) }
        assert_fits(columns, "requires", "--unused", "unused.json", chdir: folder)
        assert_fits(columns, "requires", "--diff", "boot.json", "boot.json", chdir: folder)
      end
      assert_fits(40, "requires", "--tree", "boot.json", chdir: folder)
      assert_fits(40, "replay", "culet.trace", "--runs", "1", "--allocators", "glibc,culet", chdir: folder) { |text| assert_match(%r{2/2}, text) }
    end
  end

  # The progress and the table of a comparison, where a command's name has two lines, and is longer than the terminal.
  def test_a_comparison_in_a_narrow_terminal
    [40, 80].each do |columns|
      raw, = assert_fits(columns, "compare", "--runs", "1", "--allocators", "glibc,glibc:arena_max=2", "--", *RUBY, "-e", "# #{"a long name " * 10}\n#{Sampled::STOP}",
                         culet: Sampled.command(culet_command))
      assert_match(%r{2/2}, raw)
    end
  end

  # What goes elsewhere is not cut, unless COLUMNS says so.
  def test_without_a_terminal
    with_program(*RUBY, "-e", "$0 = 'a title of a process that is rather long, as are those of servers'; #{WAITING}") do |pid|
      full, = run_culet("cow", pid.to_s, "--writes", "0", env: NEUTRAL)
      assert_operator width(full), :>, 80
      refute_includes full, "…"
      narrow, = run_culet("cow", pid.to_s, "--writes", "0", env: NEUTRAL.merge("COLUMNS" => "60"))
      assert_operator width(narrow), :<=, 60
      ["0", "-3", "many", "99999999999", "\xFF"].each do |columns|
        env = NEUTRAL.merge("COLUMNS" => columns, "TERM" => columns)
        assert_operator width(run_culet("cow", pid.to_s, "--writes", "0", env: env).first), :>, 80, columns
      end
    end
  end

  def test_colours
    with_program(*RUBY, "-e", WAITING) do |pid|
      { {} => true, { "TERM" => "dumb" } => false, { "NO_COLOR" => "1" } => false, { "NO_COLOR" => "" } => true }.each do |env, colored|
        text, = on_terminal(80, "report", pid.to_s, env: env)
        assert_equal colored, text.include?("\e["), env.to_s
        assert_includes on_terminal(80, "report", pid.to_s, "--color", env: env).first, "\e["
      end
      refute_includes on_terminal(80, "report", pid.to_s, "--no-color").first, "\e["
      refute_includes on_terminal(80, "doctor", pid.to_s, env: { "TERM" => "dumb" }).first, "\e"
      refute_includes on_terminal(80, "cow", pid.to_s, env: { "TERM" => "dumb" }).first, "\e"
    end
  end

  private

  def in_folder(&) = Dir.mktmpdir("culet-width", &)

  # Sentences on standard error, and words that are too long themselves, are left to the terminal to break.
  def assert_fits(columns, *words, **options)
    raw, ended = on_terminal(columns, *words, **options)
    text = raw.gsub(/\e\[[0-9;]*[A-Za-z]/, "")
    assert_equal 0, ended.exitstatus, text
    over = text.split(/[\r\n]+/).select { |line| Unicode::DisplayWidth.of(line) > columns && line.strip.include?(" ") && !line.start_with?("culet: ") }
    assert_empty over, "#{words.join(" ")} at #{columns} columns"
    assert_operator text.lines.size, :>, 2
    yield text.delete("\r") if block_given?
    [text, ended]
  end

  def width(text) = text.lines.map { |line| Unicode::DisplayWidth.of(line.chomp) }.max

  # @return [Array(String, Process::Status)] all that culet wrote to a terminal so wide
  def on_terminal(columns, *words, env: {}, chdir: ROOT, culet: culet_command)
    PTY.open do |master, slave|
      slave.winsize = [40, columns]
      pid = spawn({ **NEUTRAL, "TERM" => "xterm", "LC_ALL" => "C.UTF-8", **env }, *culet, *words, in: File::NULL, out: slave, err: slave, chdir: chdir,
pgroup: true)
      slave.close
      [Timeout.timeout(PATIENCE_SECONDS) { read_all(master) }, await_end(pid)]
    ensure
      end_started(pid) if pid
    end
  end

  def read_all(master)
    text = +""
    loop { text << master.readpartial(65_536) }
  rescue EOFError, Errno::EIO # so a terminal ends
    text.force_encoding(Encoding::UTF_8).scrub
  end
end
