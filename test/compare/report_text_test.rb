# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/report/table"
require_relative "report_documents"

# The reports for a terminal.
class ReportTextTest < Minitest::Test
  include Culet::Benchmark
  include Culet::Compare::Report

  def table(document, width: 80, **options) = Culet::Text::Lines.within(width) { Table.new(document, unicode: true, **options).to_s }

  def plain(text) = text.gsub(/\e\[[\d;]*m/, "")

  # Cells of a table's line.
  def cells(text, start) = text.lines.find { |line| line.start_with?("#{start} ") }.strip.split(/ {2,}/)

  def test_the_table_holds_figures_intervals_and_verdicts
    text = table(ReportDocuments.fixture, width: 240)
    assert_equal ["allocator", "peak RSS MB", "peak RSS / glibc", "mean RSS MB", "peak PSS MB", "mean PSS MB", "CPU s", "wall s"], cells(text, "allocator")
    summary = ReportDocuments.fixture["results"].find do |result|
      result.values_at("workload", "allocator") == %w[threads culet]
    end.dig("summary", "peak_rss_bytes")
    shown = cells(text, "culet")
    assert_equal format("%d (%d–%d)", *summary.values_at("median", "low", "high").map { |bytes| (bytes / 1e6).round }), shown[1]
    assert_match(/\Asmaller: 0\.\d\d \(0\.\d\d–0\.\d\d\)\z/, shown[2])
    assert_equal "baseline", cells(text, "glibc")[2]
    assert_match(/no difference: 1\.01 /, text)
    assert_includes text, "req/s"
    assert_includes text, "p99 ms"
  end

  def test_what_the_figures_mean_and_who_was_left_out_is_said
    text = table(ReportDocuments.fixture, width: 200)
    assert_includes text, "excluded: glibc:arena_max=2, run 3: the workload ended by SIGSEGV."
    assert_includes text.gsub(/\s+/, " "), "excluded: mimalloc: its library libmimalloc.so was not found. Install it with `apt-get install libmimalloc2.0`."
    assert_includes text, "RSS is the resident memory of all processes of a run"
  end

  def test_every_line_fits_the_terminal
    document = ReportDocuments.fixture
    [40, 50, 60, 80, 100, 132].each do |width|
      [false, true].each do |color|
        longest = plain(table(document, width: width, color: color)).lines.map { |line| line.chomp.length }.max
        assert_operator longest, :<=, width, "at #{width} columns"
      end
    end
  end

  def test_at_eighty_columns_the_peak_keeps_its_interval_and_the_verdict_its_ratio
    shown = cells(table(ReportDocuments.fixture, width: 80), "culet")
    assert_match(/\A\d+ \(\d+–\d+\)\z/, shown[1])
    assert_match(/\Asmaller: 0\.\d+ \(/, shown[2])
  end

  def test_colour_marks_the_best_and_only_when_asked_for
    document = ReportDocuments.small({ "glibc" => 100, "culet" => 50 })
    refute_includes table(document, color: false), "\e"
    text = table(document, color: true, width: 120)
    assert_match(/culet +\e\[1;32m50\.0 \(50\.0–50\.0\)\e\[0m/, text)
    refute_match(/\e\[1;32m100/, text)
    assert_equal table(document, color: false, width: 120), plain(text)
  end

  def test_a_terminal_without_unicode_gets_ascii
    text = Culet::Text::Lines.within(100) { Table.new(ReportDocuments.fixture, color: true, unicode: false).to_s }
    assert text.ascii_only?, text[/[^[:ascii:]]/]
    assert_includes text, "(0.4"
  end

  def test_one_run_has_no_interval
    text = table(ReportDocuments.edges["single run"], width: 120)
    assert_equal ["50.0", "no difference: 0.50", "25.0"], cells(text, "culet")[1, 3]
    assert_includes text, "One run each, which has no interval"
  end

  def test_ratios_of_which_none_is_shown_are_one_sentence
    document = ReportDocuments.fixture
    document["comparisons"].each { |comparison| comparison["verdict"] = "no difference shown" }
    text = table(document, width: 120)
    assert_includes text, "The runs show no difference to glibc in mean RSS, peak PSS, mean PSS, CPU time and wall time."
    refute_includes text, "ratio to glibc"
    assert_includes table(ReportDocuments.fixture, width: 120), "ratio to glibc"
  end

  def test_an_interrupted_comparison_says_so
    assert_match(/\AThe comparison was interrupted/, table(ReportDocuments.edges["incomplete"]))
  end

  def test_documents_that_lack_something_are_shown_without_it
    ReportDocuments.edges.each do |name, document|
      text = table(document, width: 100)
      refute_empty text.strip, name
      refute_match(/NaN|Infinity|\bnil\b/, text, name)
    end
    assert_includes table(ReportDocuments.edges["nothing"]), "No allocator completed a run"
    assert_includes table(ReportDocuments.edges["all excluded"]), "excluded: culet: it crashed."
    refute_includes table(ReportDocuments.edges["no pss"], width: 200), "PSS MB"
    assert_includes table(ReportDocuments.edges["huge"], width: 200), "peak RSS PB"
  end

  def test_no_control_sequence_of_a_name_reaches_the_terminal
    document = ReportDocuments.hostile
    refute_includes table(document, color: false, width: 100), "\e"
  end
end
