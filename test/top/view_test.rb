# frozen_string_literal: true

require_relative "top_helper"
require "culet/tools/top/columns"

# `culet top` on a terminal: what it shows of real processes, and what keys change.
class TopViewTest < Minitest::Test
  include TopHelper

  WIDTHS = [40, 80, 120, 200].freeze

  def test_it_fits_each_width_also_when_the_terminal_changes_it
    with_tree do |pid|
      with_terminal(columns: 100, rows: 24) do |terminal|
        start(terminal, pid)
        [*WIDTHS, 40].each do |columns|
          terminal.resize(columns: columns, rows: 20)
          text = terminal.wait_for { |screen| screen.match?(/TITLE/) && heading_fits?(screen, columns) && table(screen).size == 3 }
          # Nothing wrapped: each line is where the view has put it.
          assert_match(/\Aculet top  \d\d:\d\d:\d\d  3 processes/, text)
          assert_match(/^q Quit  h Help/, text.lines(chomp: true)[19])
        end
        terminal.press("q")
      end
    end
  end

  def test_processes_come_and_go
    with_tree do |pid|
      with_terminal do |terminal|
        start(terminal, pid, "--every", "0.2")
        # The larger one of two that are alike comes first.
        terminal.wait_for { |text| titles(text).map { |title| title.delete_prefix("├ ").delete_prefix("└ ") }.sort == ["tree: master", "tree: worker one", "tree: worker two"] }
        one = child(pid, "worker one")
        Process.kill(:KILL, one)
        terminal.wait_for { |text| titles(text) == ["tree: master", "└ tree: worker two"] }
        terminal.wait_for(/^\d\d:\d\d:\d\d +#{one}  ended: tree: worker one$/)
        Process.kill(:USR1, pid)
        terminal.wait_for { |text| titles(text) == ["tree: master", "├ tree: worker three", "└ tree: worker two"].sort || titles(text).size == 3 }
        assert_match(/^\d\d:\d\d:\d\d +\d+  started: tree: /, terminal.wait_for(/started: /))
        terminal.press("q")
      end
    end
  end

  def test_keys_sort_filter_pause_and_help
    with_tree do |pid|
      with_terminal do |terminal|
        start(terminal, pid, "--every", "0.2")
        workers = %w[one two].map { |name| child(pid, "worker #{name}") }
        terminal.wait_for { |text| rows(text).first.to_s.start_with?(pid.to_s.rjust(4)) }
        terminal.press("t", "<") # a list by the number of the process
        terminal.wait_for { |text| rows(text).map(&:to_i) == [pid, *workers.sort] }
        terminal.press("r")
        terminal.wait_for { |text| rows(text).map(&:to_i) == [*workers.sort.reverse, pid] }
        terminal.enter("/worker tw")
        terminal.wait_for { |text| rows(text).map(&:to_i) == [workers.last] && text.match?(/^Filter: worker tw  Esc Clear/) }
        terminal.press("Escape")
        terminal.wait_for { |text| rows(text).size == 3 }
        terminal.press("h")
        assert_match(/^  FREE +free memory that malloc keeps/, terminal.wait_for(/^Keys/))
        terminal.press("PageDown")
        assert_match(/^Up Down Scroll  Other keys Back$/, terminal.wait_for(/^  AGE +time since the start/))
        terminal.press("h")
        terminal.wait_for { |text| rows(text).size == 3 }
        terminal.press("Space")
        paused = terminal.wait_for(/PAUSED/)[/\d\d:\d\d:\d\d/]
        Process.kill(:KILL, workers.first)
        sleep 1.5
        assert_equal [paused, 3], terminal.screen.then { |text| [text[/\d\d:\d\d:\d\d/], rows(text).size] }
        terminal.press("Space")
        terminal.wait_for { |text| rows(text).size == 2 && !text.include?("PAUSED") }
        terminal.press("q")
        terminal.wait_for(/^ready>/)
      end
    end
  end

  def test_the_figures_are_those_of_the_kernel
    with_tree do |pid|
      with_terminal(columns: 120) do |terminal|
        start(terminal, pid, "--no-color")
        one = child(pid, "worker one")
        row = rows(terminal.wait_for { |text| rows(text).size == 3 }).find { |line| line.to_i == one }
        shown = row.split[1, 2].map(&:to_f)
        text = File.read("/proc/#{one}/smaps_rollup")
        kernel = %w[Pss Private_(?:Clean|Dirty)].map { |name| text.scan(/^#{name}:\s+(\d+) kB/).flatten.sum(&:to_i) * 1024 / 1e6 }
        shown.zip(kernel).each { |figure, other| assert_in_delta other, figure, 0.06 + other * 0.01 }
        assert_operator shown.last, :>, 20
        terminal.press("q")
      end
    end
  end

  def test_without_an_agent_a_line_says_how_to_get_the_rest
    with_tree(agent: false) do |pid|
      with_terminal do |terminal|
        text = start(terminal, pid, expect: %r{require "culet/agent" there})
        rows(text).each { |row| assert_equal %w[- - - -], row.split[5, 4] }
        terminal.press("q")
      end
    end
  end

  def test_a_hostile_title_is_text
    title = "evil \e[2J\e]0;owned\a\r\n\u202e\u65e5\u672c\u8a9e\u200b e\u0301 tail"
    with_program(RbConfig.ruby, "-e", "$0 = #{title.dump}; #{WAITING}") do |pid|
      with_terminal do |terminal|
        text = start(terminal, pid, expect: /evil/)
        assert_match(/^ *#{pid} .* evil \?\[2J\?\]0;owned\?+\u65e5\u672c\u8a9e\? e\u0301 tail$/, text)
        assert_match(/\Aculet top/, text)
        terminal.press("q")
      end
    end
  end

  def test_no_color_writes_no_styles
    with_tree do |pid|
      { [] => true, ["--no-color"] => false }.each do |words, styled|
        with_terminal do |terminal|
          start(terminal, pid, *words)
          assert_equal styled, terminal.styled.match?(/\e\[[0-9;]*m/)
          terminal.press("q")
        end
      end
    end
  end

  private

  # Whether the table has as many columns as fit, and the title.
  def heading_fits?(screen, columns)
    heading = screen.lines(chomp: true).grep(/ TITLE/).first
    heading.split.size == Culet::Top::Columns.fitting(columns).size + 1
  end

  # @return [Array<String>] the rows, also those whose titles are cut
  def table(screen) = screen.lines(chomp: true).grep(/\A *\d+ +\d+\.\d /)

  def titles(text) = rows(text).map { |row| row[/ ((?:[├└] )?tree: .*)\z/, 1] }.sort
end
