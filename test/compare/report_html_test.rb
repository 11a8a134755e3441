# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/report/html"
require_relative "report_documents"

# The HTML report as text; report_browser_test.rb opens it.
class ReportHtmlTest < Minitest::Test
  include Culet::Compare::Report

  def page(document) = Html.new(document).to_s

  # The page without what scripts hold.
  def markup(document) = page(document).gsub(%r{<script.*?</script>}m, "")

  def embedded(page, id) = JSON.parse(page[%r{<script type="application/json" id="#{id}">(.*?)</script>}m, 1])

  def test_the_whole_document_is_inside
    document = ReportDocuments.fixture
    assert_equal document, embedded(page(document), "document")
  end

  def test_nothing_is_loaded_from_anywhere
    text = markup(ReportDocuments.fixture)
    assert_empty text.scan(/\b(?:src|href|action|data|poster|srcset)\s*=\s*"(?!data:)[^"]*"/)
    assert_empty text.scan(/@import|url\(/)
    assert_includes text, %(content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:;)
  end

  def test_the_first_paragraph_and_the_tables_hold_the_result
    text = markup(ReportDocuments.fixture)
    assert_includes text, "The peak RSS of culet is lower than that of glibc on threads (0.48 times) and window (0.38 times)."
    assert_match(/<small class="good">✓ smaller: 0\.48 \(/, text)
    assert_match(/<small class="bad">✗ larger: 1\.1\d/, text)
    assert_includes text, %(<small class="neutral">no difference shown</small>)
    assert_includes text, "culet compare threads window rack --runs 5 --seed 42"
    assert_includes text, "Its library libmimalloc.so was not found. Install it with `apt-get install libmimalloc2.0`."
    assert_includes text, "<noscript>"
  end

  def test_more_requests_are_better_and_more_time_is_worse
    document = ReportDocuments.fixture
    text = markup(document)
    better = document["comparisons"].find { |one| one.values_at("metric", "verdict") == %w[requests_per_second larger] }
    worse = document["comparisons"].find { |one| one.values_at("metric", "verdict") == %w[cpu_seconds larger] }
    assert_includes text, "✓ larger: #{Culet::Text::Numbers.ratio(better["ratio"], apart: true)}"
    assert_includes text, "✗ larger: #{Culet::Text::Numbers.ratio(worse["ratio"], apart: true)}"
  end

  def test_figures_and_tables_are_named_for_those_who_do_not_see_them
    text = markup(ReportDocuments.fixture)
    charts = text.scan(/<div class="chart[^>]*>/)
    assert_operator charts.size, :>, 20
    charts.each { |chart| assert_match(/role="img" aria-label="[^"]{40,}"/, chart) }
    text.scan(%r{<table.*?</table>}m).each do |table|
      assert_match(/<th scope="col"/, table)
      assert_match(/<th scope="row"/, table)
    end
    assert_match(/<html lang="en">/, text)
    assert_equal text.scan("<figure>").size, text.scan("<figcaption>").size
  end

  def test_texts_of_the_document_are_never_markup
    document = ReportDocuments.hostile
    text = page(document)
    refute_includes text, "<script>window.pwned"
    refute_includes text, "<img"
    assert_includes markup(document), "&lt;img src=x onerror=&quot;window.pwned=1&quot;&gt;"
    assert_equal document, embedded(text, "document")
    refute_match(/[<>&\u2028\u2029]/, text[%r{<script type="application/json" id="charts">(.*?)</script>}m, 1])
  end

  def test_line_separators_are_escaped_in_scripts
    document = ReportDocuments.small({ "culet" => 1 }, workload: "a\u2028b\u2029c")
    text = page(document)
    assert_includes text, 'a\u2028b\u2029c'
    assert_equal document, embedded(text, "document")
  end

  def test_bytes_that_are_no_text_do_not_stop_it
    document = ReportDocuments.small({ "culet" => 50 }, workload: "a\xFFb")
    assert_equal "a�b", embedded(page(document), "document").dig("results", 0, "workload")
  end

  def test_documents_that_lack_something_are_shown_without_it
    ReportDocuments.edges.each do |name, document|
      text = page(document)
      assert_match(%r{</html>\s*\z}, text, name)
      refute_match(/NaN|Infinity/, text.gsub(%r{<script>.*?</script>}m, ""), name)
      assert_equal document, embedded(text, "document"), name
    end
    assert_includes markup(ReportDocuments.edges["incomplete"]), %(<p class="notice" role="note">The comparison was interrupted)
    assert_includes markup(ReportDocuments.edges["nothing"]), "No allocator completed a run."
    refute_includes markup(ReportDocuments.edges["no pss"]), "peak PSS, MB"
    refute_includes markup(ReportDocuments.edges["no baseline"]), "Ratio to"
    refute_includes markup(ReportDocuments.edges["single run"]), "95 % interval</span>"
    refute_includes markup(ReportDocuments.edges["no samples"]), "RSS over time"
  end

  def test_long_curves_are_thinned_for_the_charts_alone
    document = ReportDocuments.small({ "culet" => 50 }, runs: 1)
    samples = Array.new(3_000) { |index| { "at_seconds" => index / 50.0, "rss_bytes" => 10_000_000 + index * 7 % 1_000, "processes" => 1 } }
    samples[1_500]["rss_bytes"] = 77_000_000
    document["results"][0]["runs"][0]["samples"] = samples
    text = page(document)
    series = embedded(text, "charts").dig("workloads", 0, "curves", "series", 0)
    assert_operator series["values"].size, :<=, Culet::Thinning::MAXIMUM
    assert_equal 77.0, series["values"].max
    assert_equal 3_000, embedded(text, "document").dig("results", 0, "runs", 0, "samples").size
    assert_includes markup(document), "points per curve"
    refute_includes markup(ReportDocuments.fixture), "points per curve"
  end

  def test_without_the_vega_gem_it_says_what_to_install
    program = <<~RUBY
      require "json"
      require "culet/tools/compare/report/html"
      begin
        Culet::Compare::Report::Html.new(JSON.parse($stdin.read)).to_s
      rescue Culet::Error => e
        puts e.message
      end
    RUBY
    empty = new_folder
    out, = assert_success(RbConfig.ruby, "-I#{ROOT}/lib", "-e", program, stdin: COMPARE_DOCUMENT,
                          env: { "GEM_HOME" => empty, "GEM_PATH" => empty, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil })
    assert_equal "the HTML report needs the gem vega, which comes with culet-cli; run `gem install culet-cli`, or use --json\n", out
  end
end
