# frozen_string_literal: true

require "test_helper"
require "culet/tools/top/history"
require "culet/tools/top/page"
require "culet/tools/top/screen"
require_relative "moments"

# The lines that `culet top` draws for a moment.
class TopScreenTest < Minitest::Test
  include Moments

  TITLES = ["puma: cluster worker 0: 4200 [app]", "\e[2J\e]0;owned\a\r\n\tworker", "\u65e5\u672c\u8a9e\u306e\u30ef\u30fc\u30ab\u30fc" * 4,
            "e\u0301\u0301\u0301\u0301\u0301\u0301 \u202e\u200b\u200d\u2028\ufeff evil", "\u{1f468}\u200d\u{1f469}\u200d\u{1f467} family \u{1f1e9}\u{1f1ea}", "\xff\xfe bytes",
            "", "x" * 300].freeze
  SIZES = [[1, 1], [2, 5], [3, 39], [8, 40], [12, 40], [24, 80], [40, 120], [50, 200]].freeze

  def setup
    @state = Culet::Top::State.new
    @history = Culet::Top::History.new
    @history.add(Moments::EVENTS)
  end

  def test_no_line_is_wider_than_the_terminal_or_has_control_characters
    SIZES.product([true, false], [[], %w[h], ["/", "w"], %w[t], [:right]]).each do |(rows, columns), unicode, keys|
      @state = Culet::Top::State.new
      keys.each { |key| @state.press(key, sortable: [:pss]) }
      lines = frame(hostile, rows: rows, columns: columns, unicode: unicode)
      assert_equal rows, lines.size
      lines.each do |line|
        assert_operator Culet::Text::Lines.width(line), :<=, columns, line.inspect
        refute_match(/[[:cntrl:]\u202a-\u202e\u2028\u200b\ufeff]/, line)
        assert_predicate line, :ascii_only? unless unicode
      end
    end
  end

  def test_colors_add_styles_only
    plain = frame(hostile, rows: 24, columns: 100)
    colored = frame(hostile, rows: 24, columns: 100, color: true)
    refute_equal plain, colored
    assert_equal plain, colored.map { |line| line.gsub(/\e\[[0-9;]*m/, "") }
  end

  def test_titles_of_wide_characters_leave_the_numbers_in_their_columns
    lines = frame(hostile, rows: 40, columns: 120).grep(/^ +1\d\d /)
    assert_equal TITLES.size, lines.size
    assert_equal 1, lines.map { |line| line[/\A *\d+ +[\d.]+/].size }.uniq.size
  end

  def test_wider_terminals_show_more_columns
    headings = [40, 80, 120, 200].map { |columns| frame(moment([process(100)]), rows: 24, columns: columns).grep(/PID/).first.split.map { |word| word.delete("▼") } }
    headings.each_cons(2) { |narrow, wide| assert_equal narrow[0..-2], wide.first(narrow.size - 1) }
    assert_equal %w[PID PSS PRIV SHR% TITLE], headings[0]
    assert_equal %w[PID PSS PRIV SHR% GROWTH MALLOC FREE SLOTS GC/M TITLE], headings[1]
    assert_equal Culet::Top::Columns::ALL.map(&:heading) + ["TITLE"], headings[3]
  end

  def test_cells_have_one_unit
    line = rows_of(moment([process(100, started_at: 1_763_999_940.0)]), columns: 200).first
    assert_equal %w[100 150.0 75.0 75 0.0 30.0 2.0 412k 12.0 300.0 999 4 0.0 5.0 5 1:03 worker 100], line.split
    line = rows_of(moment([process(100, rss_bytes: 150 * 10**9, pss_bytes: 120 * 10**9, growth_bytes: 10**9)]), columns: 200).first
    assert_equal %w[100 120.0 0.1], line.split.first(3)
    assert_includes line, " +1.0 "
  end

  def test_no_figure_is_wider_than_its_column
    [0, 1, 999, 9999, 10_000, 99_949, 10**6, 10**7 - 1, 10**7, 999_949_999, 10**9, 99_949_999_999, 10**11, 10**14].each do |number|
      figures = Moments::FIGURES.to_h { |name, value| [name, value.is_a?(Numeric) ? number : value] }.merge("gc_per_minute" => [number, 10**5].min)
      bytes = %w[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes].to_h { |name| [name.to_sym, number] }
      unit = Culet::Text::Size.unit(number).last
      figures = figures.merge(figures.slice("live_slots", "free_slots", "major_gcs").transform_values { |count| [count, 10**9].min })
      one = process(4_194_304, figures: figures, threads: [number, 999].min, started_at: 1_764_000_003.5 - [number, 10**9].min, **bytes)
      [one, one.merge("growth_bytes" => -number)].product(Culet::Top::Columns::ALL.drop(1)).each do |row, column|
        cell = column.cell(row, unit: unit, at: 1_764_000_003.5)
        assert_operator cell.size, :<=, column.width, "#{column.heading}: #{cell}"
      end
    end
  end

  def test_unknown_figures_are_a_dash_and_sort_last
    processes = [hidden(100), process(101, figures: nil), process(102)]
    %w[t].each { |key| @state.press(key, sortable: [:pss]) }
    [[], ["r"]].each do |keys|
      keys.each { |key| @state.press(key, sortable: [:pss]) }
      rows = rows_of(moment(processes), columns: 80)
      assert_equal "100 - - - - - - - -".split, rows.last.split.first(9)
      assert_equal %w[- - - -], rows.find { |row| row.start_with?(" 101") }.split[5, 4]
    end
  end

  def test_children_stand_below_their_parents_and_are_sorted_there
    processes = [process(100, 1), process(101, 100), process(102, 100), process(103, 101), process(200, 1)]
    assert_equal [[200, []], [100, []], [102, [false]], [101, [true]], [103, [true, true]]], tree(processes)
    titles = rows_of(moment(processes)).map { |line| line[/ (\D+\d+)\z/, 1] }
    assert_equal ["worker 200", "worker 100", "├ worker 102", "└ worker 101", "  └ worker 103"], titles
    @state.press("r", sortable: [:pss])
    assert_equal [100, 101, 103, 102, 200], tree(processes).map(&:first)
    @state.press("t", sortable: [:pss])
    assert_equal [100, 101, 102, 103, 200], tree(processes).map(&:first)
  end

  def test_processes_that_name_each_other_as_parents_are_shown_once
    assert_equal [100, 101, 102], tree([process(100, 101), process(101, 100), process(102)]).map(&:first).sort
  end

  def test_the_filter_looks_at_titles_and_numbers
    processes = [process(100, title: "Sidekiq [busy]"), process(101, title: "puma"), process(210, title: "puma")]
    { "sideKIQ" => [100], "10" => [100, 101, 210], "[b" => [100], "21" => [210], "nothing" => [] }.each do |text, pids|
      @state = Culet::Top::State.new
      ["/", *text.chars, :enter].each { |key| @state.press(key, sortable: [:pss]) }
      frame = frame(moment(processes), rows: 24, columns: 80)
      assert_equal pids, frame.filter_map { |line| line[/\A *(\d+) .*(?:Sidekiq|puma)/, 1]&.to_i }.sort
      assert_equal pids.empty?, frame.any? { |line| line.include?("no process matches the filter") }
      assert_includes frame.last, "Filter: #{text}"
    end
  end

  def test_more_processes_than_rows_scroll
    processes = (100..199).map { |pid| process(pid) }
    first = rows_of(moment(processes), rows: 24)
    assert_operator first.size, :<, 24
    assert_match(/\A 199 /, first.first)
    @state.press(:page_down, sortable: [:pss])
    assert_match(/\A #{199 - first.size} /, rows_of(moment(processes), rows: 24).first)
    @state.press(:end, sortable: [:pss])
    assert_match(/\A 100 /, rows_of(moment(processes), rows: 24).last)
    assert_match(/\A 101 /, rows_of(moment(processes.first(2)), rows: 24).first) # which are fewer now
  end

  def test_the_limit_and_what_is_left
    { 400 => /^limit \[\|{12} {18}\] 40 %  headroom 600 MB  400 MB of 1.00 GB  control group/, 990 => /^limit \[\|{30}\] 99 %  headroom 10.0 MB/ }.each do |used, text|
      assert_match text, frame(moment([process(100)], limit: limit(used)), rows: 24, columns: 100)[2]
    end
    assert_match(/^limit 40 %  headroom 600 MB$/, frame(moment([process(100)], limit: limit(400)), rows: 24, columns: 40)[2])
    assert_equal "no memory limit", frame(moment([process(100)]), rows: 24, columns: 40)[2]
    assert_match(/^limit 1.00 GB, use not known/, frame(moment([process(100)], limit: limit(0).merge("used_bytes" => nil)), rows: 24, columns: 80)[2])
  end

  def test_the_last_events_stand_below
    text = frame(moment([process(100)]), rows: 40, columns: 100).join("\n")
    ["limit: collection", "ended: ?[31mworker", "trim, returned 3.00 MB", "started: puma: cluster worker 1"].each_cons(2) do |later, earlier|
      assert_operator text.index(later), :<, text.index(earlier)
    end
  end

  def test_a_page_has_everything
    text = Culet::Top::Page.new(moment([process(100), process(101, 100, figures: nil)]), columns: nil, color: false, unicode: true).to_s
    assert_match(/^ 101 .*└ worker 101$/, text)
    assert_match(%r{^No figures of malloc, slots and GC from 101: require "culet/agent" there\.$}, text)
    assert_match(/ AGE TITLE$/, text)
    refute_match(/\e|▼/, text)
  end

  private

  def hostile
    @hostile ||= moment(TITLES.each_with_index.map { |title, index| process(100 + index, index.zero? ? 1 : 99 + index, title: title) } + [hidden(4_194_304, title: "hidden")],
                        limit: limit(900))
  end

  def frame(moment, rows:, columns:, color: false, unicode: true)
    @screen = Culet::Top::Screen.new(@state, color: color, unicode: unicode)
    @screen.frame(moment, rows: rows, columns: columns, history: @history, notes: ["a note with words " * 9])
  end

  # @return [Array<String>] the rows of the table
  def rows_of(moment, rows: 24, columns: 80) = frame(moment, rows: rows, columns: columns).grep(/\A *\d+ .*worker \d+/).grep_v(/\A\d\d:/)

  # @return [Array] number, and for each level above whether it ends there
  def tree(processes) = Culet::Top::Rows.new(processes, @state).list.map { |row| [row.process["pid"], row.branches] }
end
