# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/report/findings"
require "culet/benchmark/palette"
require "culet/render/thinning"
require_relative "report_documents"

# How numbers, verdicts and the first paragraph are worded.
class ReportWordsTest < Minitest::Test
  include Culet::Benchmark
  include Culet::Compare::Report

  def findings(document) = Findings.new(Results.new(document))

  def lead(document) = findings(document).lead.join(" ")

  def words(document) = findings(document).workload(Results.new(document).workloads.first).join(" ")

  def test_numbers_have_three_significant_digits_or_thousands_separators
    expected = { 0 => "0", 0.1234 => "0.12", 1.005 => "1.00", 9.99 => "9.99", 9.996 => "10.0", 12.34 => "12.3", 99.96 => "100", 840.4 => "840", 1234.5 => "1,235",
                 1_234_567 => "1,234,567" }
    expected.each { |value, text| assert_equal text, Culet::Text::Numbers.significant(value) }
    assert_equal "", Culet::Text::Numbers.significant(nil)
    assert_equal "401 (395–410)", Culet::Text::Numbers.interval(401, 395, 410)
    assert_equal "401", Culet::Text::Numbers.interval(401)
    assert_equal "16.8 GB", Culet::Text::Size.human(16_777_216_000)
    assert_equal "512 bytes", Culet::Text::Size.human(512)
  end

  def test_a_ratio_that_differs_from_one_is_seen_to_differ
    assert_equal "0.48 (0.46–0.51)", Culet::Text::Numbers.ratio({ "median" => 0.481, "low" => 0.462, "high" => 0.507 }, apart: true)
    assert_equal "0.992 (0.988–0.996)", Culet::Text::Numbers.ratio({ "median" => 0.992, "low" => 0.988, "high" => 0.996 }, apart: true)
    assert_equal "1.00 (0.99–1.02)", Culet::Text::Numbers.ratio({ "median" => 1.0004, "low" => 0.988, "high" => 1.017 })
    assert_equal "0.013 (0.012–0.014)", Culet::Text::Numbers.ratio({ "median" => 0.013, "low" => 0.012, "high" => 0.014 })
    assert_equal "120 (99–1,000)", Culet::Text::Numbers.ratio({ "median" => 120, "low" => 99, "high" => 1000 })
  end

  def test_units_grow_with_the_figures
    peak = METRIC.fetch("peak_rss_bytes")
    assert_equal "MB", peak.unit([840e6]).first
    assert_equal "GB", peak.unit([840e6, 400e9]).first
    assert_equal "PB", peak.unit([9e19]).first
    assert_equal "µs", METRIC.fetch("cpu_per_request_seconds").unit([0.0001]).first
    assert_equal "ms", METRIC.fetch("p99_seconds").unit([0.009]).first
    assert_equal "s", METRIC.fetch("p99_seconds").unit([0.009, 2.5]).first
  end

  def test_a_win_is_said_with_its_figures
    document = ReportDocuments.small({ "glibc" => 840, "tcmalloc" => 393, "culet" => 401 }, comparisons: { "culet" => [0.477, 0.46, 0.51, "smaller"] })
    assert_includes lead(document), "The peak RSS of culet is lower than that of glibc on threads (0.48 times)."
    assert_includes words(document), "On threads, culet peaks at 401 MB, 0.48 (0.46–0.51) times the 840 MB of glibc."
    assert_includes words(document), "tcmalloc has the lowest median peak, 393 MB."
  end

  def test_a_loss_is_said_as_plainly
    document = ReportDocuments.small({ "glibc" => 100, "culet" => 120 }, comparisons: { "culet" => [1.2, 1.15, 1.25, "larger"] })
    assert_includes lead(document), "The peak RSS of culet is higher than that of glibc on threads (1.20 times)."
    assert_includes words(document), "culet peaks at 120 MB, 1.20 (1.15–1.25) times the 100 MB of glibc. glibc has the lowest median peak, 100 MB."
    refute_match(/lower than/, lead(document))
  end

  def test_what_the_runs_cannot_tell_is_not_claimed
    document = ReportDocuments.small({ "glibc" => 100, "culet" => 98 }, comparisons: { "culet" => [0.98, 0.9, 1.05, "no difference shown"] })
    assert_includes lead(document), "On threads, the runs show no difference in peak RSS between culet and glibc."
    assert_includes words(document), "culet peaks at 98.0 MB and glibc at 100 MB; 5 runs show no difference."
    refute_match(/lower than|higher than/, lead(document))
  end

  def test_the_rate_and_the_cpu_time_are_judged_by_their_own_direction
    document = ReportDocuments.fixture
    findings = findings(document)
    rate = METRIC.fetch("requests_per_second")
    cpu = METRIC.fetch("cpu_seconds")
    assert_equal :good, findings.judgement({ "verdict" => "larger" }, rate)
    assert_equal :bad, findings.judgement({ "verdict" => "smaller" }, rate)
    assert_equal :bad, findings.judgement({ "verdict" => "larger" }, cpu)
    assert_equal :neutral, findings.judgement({ "verdict" => "no difference shown" }, cpu)
  end

  def test_documents_that_lack_something_are_put_into_words_too
    edges = ReportDocuments.edges
    assert_equal "No allocator completed a run.", lead(edges["nothing"])
    assert_equal lead(edges["nothing"]), lead(edges["no keys"])
    assert_equal lead(edges["nothing"]), lead(edges["all excluded"])
    assert_includes lead(edges["single run"]), "One run each"
    assert_includes lead(ReportDocuments.small({ "glibc" => 100, "culet" => 50 }, runs: 3)),
                    "Medians of 3 runs each, too few to show a difference, which takes at least 4."
    assert_includes lead(edges["incomplete"]), "interrupted"
    assert_includes lead(edges["no culet"]), "On threads, jemalloc has the lowest median peak, 70.0 MB."
    assert_includes lead(edges["culet as baseline"]), "culet is the baseline"
    assert_includes lead(edges["no baseline"]), "There is no comparison for culet on threads."
    assert_includes words(edges["all excluded"]), "No allocator completed a run on threads."
  end

  def test_culet_excluded_from_a_workload_is_said_with_its_reason
    document = ReportDocuments.small({ "glibc" => 100 },
                                     excluded: [{ "workload" => "threads", "allocator" => "culet", "reason" => "libculet.so is not built",
"remedy" => "Run bin/demo" }])
    assert_includes words(document), "culet was excluded: libculet.so is not built. Run bin/demo."
  end

  def test_the_median_run_is_the_one_whose_peak_is_nearest_to_the_median
    document = ReportDocuments.small({ "culet" => 50 }, runs: 3)
    document["results"][0]["runs"].zip([40, 90, 52]) { |run, peak| run["peak_rss_bytes"] = peak * 1_000_000 }
    assert_equal 3, Results.new(document).workloads[0].candidates[0].median_run["run"]
  end

  def test_bytes_that_are_no_text_and_control_characters_do_no_harm
    document = ReportDocuments.small({ "culet" => 50 }, workload: "a\xFFb\e[2J\n".b)
    assert_equal "a�b [2J ", Results.new(document).workloads[0].name
  end

  def test_every_allocator_keeps_its_colour_and_culet_is_like_no_other
    palette = Palette.new(Results.new(ReportDocuments.fixture))
    names = Results.new(ReportDocuments.fixture).allocators
    assert_equal 6, names.map { |name| palette.colour(name) }.uniq.size
    assert_equal "vermilion", palette.colour("culet")
    assert palette.dashed?("glibc:arena_max=2")
    refute palette.dashed?("culet")
    few = Palette.new(Results.new(ReportDocuments.small({ "tcmalloc" => 1, "culet" => 1 })))
    names.intersection(%w[tcmalloc culet]).each { |name| assert_equal palette.colour(name), few.colour(name) }
  end

  def test_a_candidate_that_trims_is_coloured_like_the_one_that_does_not
    palette = Palette.new(Results.new(ReportDocuments.small({ "glibc" => 4, "glibc:trim" => 3, "culet" => 2, "culet:trim" => 1, "glibc:trim,arena_max=2" => 3 })))
    %w[glibc culet].each do |name|
      assert_equal palette.colour(name), palette.colour("#{name}:trim")
      assert palette.dashed?("#{name}:trim")
    end
    refute_equal palette.colour("glibc"), palette.colour("glibc:trim,arena_max=2")
  end

  def test_what_is_left_when_the_work_is_done_is_said
    document = ReportDocuments.small({ "glibc" => 100, "culet" => 50 }, comparisons: { "culet" => [0.5, 0.45, 0.55, "smaller"] })
    document["results"].each { |result| result["summary"]["end_rss_bytes"] = result["summary"]["mean_rss_bytes"] }
    document["comparisons"] << document["comparisons"].first.merge("metric" => "end_rss_bytes")
    assert_includes words(document), "At the end culet holds 25.0 MB, 0.50 (0.45–0.55) times the memory of glibc."
    document["comparisons"].last["verdict"] = "no difference shown"
    assert_includes words(document), "The runs show no difference in RSS at the end."
    assert_match(/one second after a full garbage collection/, findings(document).end_sentence)
    assert_nil findings(ReportDocuments.small({ "glibc" => 100 })).end_sentence
  end

  def test_candidates_beyond_the_palette_get_colours_too
    model = Results.new(ReportDocuments.edges["many allocators"])
    palette = Palette.new(model)
    assert_equal 7, model.allocators.map { |name| palette.colour(name) }.uniq.size
  end

  def test_thinning_keeps_the_ends_and_the_extremes_in_order
    random = Random.new(7)
    points = Array.new(5_000) { |index| [index / 50.0, 100 + random.rand] }
    points[1234][1] = 999
    points[4321][1] = 1
    thinned = Culet::Thinning.thin(points)
    assert_operator thinned.size, :<=, Culet::Thinning::MAXIMUM
    assert_equal points.values_at(0, -1), thinned.values_at(0, -1)
    assert_includes thinned, points[1234]
    assert_includes thinned, points[4321]
    assert_equal thinned.sort_by(&:first), thinned
    assert_empty thinned - points
    few = points.first(Culet::Thinning::MAXIMUM)
    assert_same few, Culet::Thinning.thin(few)
  end
end
