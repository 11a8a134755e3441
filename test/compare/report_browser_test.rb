# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/report/html"
require "map/layout"
require_relative "report_documents"

# The HTML report opened in a real browser, with no network to be had.
class ReportBrowserTest < Minitest::Test
  include Layout

  # Runs before the page's own scripts: notes whatever goes wrong from the start.
  WATCH = <<~JAVASCRIPT
    window.noted = [];
    addEventListener("error", function (event) { noted.push("error: " + event.message); });
    addEventListener("unhandledrejection", function (event) { noted.push("rejection: " + event.reason); });
    addEventListener("securitypolicyviolation", function (event) { noted.push("blocked: " + event.blockedURI); });
    ["error", "warn"].forEach(function (level) { console[level] = function () { noted.push(level + ": " + Array.from(arguments).join(" ")); }; });
  JAVASCRIPT

  # Once the charts are there: measures what was drawn, and again when one allocator has been taken out.
  MEASURE = <<~JAVASCRIPT
    new Promise(function (done) {
      function all(selector, within) { return Array.from((within || document).querySelectorAll(selector)); }
      function drawn(kind) {
        return all("[data-chart=" + kind + "]").map(function (chart) {
          var frame = chart.getBoundingClientRect();
          return { lines: all(".mark-line.role-mark path", chart).filter(function (path) { return path.getAttribute("d"); }).length,
            bars: all(".mark-rect.role-mark.layer_0_marks path", chart).map(function (path) { return path.getBBox().width; }),
            outside: all("svg text", chart).filter(function (text) { var box = text.getBoundingClientRect();
              return box.width > 0 && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1); }).map(function (text) { return text.textContent; }) };
        });
      }
      var line = document.querySelector("[data-chart=curves] .mark-line.role-mark path");
      var found = { state: document.documentElement.dataset.charts, noted: noted, pwned: window.pwned === undefined ? null : "pwned",
        resources: performance.getEntriesByType("resource").map(function (entry) { return entry.name; }),
        curves: drawn("curves"), bars: drawn("bars"),
        headings: all("h2").map(function (heading) { return heading.textContent; }),
        background: getComputedStyle(document.body).backgroundColor, stroke: line && getComputedStyle(line).stroke,
        overflow: document.documentElement.scrollWidth - window.innerWidth, width: window.innerWidth };
      var button = all("#legend button").find(function (one) { return one.dataset.allocator === "glibc"; });
      if (button) { button.click(); found.pressed = button.getAttribute("aria-pressed"); }
      function lines(charts) { return charts.map(function (chart) { return chart.lines; }).join(); }
      (function look(tries) {
        found.toggled = drawn("curves");
        if (!button || !tries || lines(found.toggled) !== lines(found.curves)) { done(found); } else { setTimeout(look, 100, tries - 1); }
      }(300));
    })
  JAVASCRIPT

  def setup
    skip "no browser to open the report with; install one with `apt-get install chromium`" unless Browser::PROGRAM
  end

  # Three tests look at the same page.
  def self.fixture_opened_by(test) = @fixture_opened ||= test.open(ReportDocuments.fixture)

  # Opens the report and returns what MEASURE found.
  def open(document, width: 1280, scheme: "light")
    Dir.mktmpdir do |folder|
      path = "#{folder}/report.html"
      File.write(path, Culet::Compare::Report::Html.new(document).to_s)
      Browser.use do |browser|
        browser.window(width, 1000)
        browser.colors(scheme)
        browser.open(path, before: WATCH, ready: "document.documentElement.dataset.charts")
        found = browser.evaluate(MEASURE)
        assert_equal ["file://#{path}"], browser.requests
        found.merge("noted" => found["noted"] + browser.complaints)
      end
    end
  end

  # What must hold of every page.
  def assert_sound(found, name = nil)
    assert_empty found["noted"], name
    assert_empty found["resources"], name
    assert_nil found["pwned"], name
    assert_equal "drawn", found["state"], name
    assert_empty found.values_at("curves", "bars").flatten.flat_map { |chart| chart["outside"] }, "texts cut off: #{name}"
    assert_operator found["overflow"], :<=, 0, "the page is wider than the window: #{name}"
  end

  def test_every_chart_is_drawn_and_nothing_is_loaded
    document = ReportDocuments.fixture
    found = self.class.fixture_opened_by(self)
    assert_sound(found)
    runs = document["results"].group_by { |result| result["workload"] }.values.map { |results| results.sum { |result| result["runs"].size } }
    assert_equal runs, found["curves"].map { |chart| chart["lines"] }
    assert_equal [6] * 5 + [5] * 5 + [5] * 8, found["bars"].map { |chart| chart["bars"].size }
  end

  def test_bars_are_as_long_as_their_figures
    document = ReportDocuments.fixture
    medians = document["results"].select { |result| result["workload"] == "threads" }.map { |result| result.dig("summary", "peak_rss_bytes", "median") }
    bars = self.class.fixture_opened_by(self)["bars"][0]["bars"]
    assert_equal medians.size, bars.size
    bars.zip(medians) { |bar, median| assert_in_delta median.to_f / medians[0], bar / bars[0], 0.02 }
  end

  def test_the_legend_hides_an_allocator_everywhere
    found = self.class.fixture_opened_by(self)
    assert_equal "false", found["pressed"]
    found["curves"].zip(found["toggled"]) { |before, after| assert_equal before["lines"] - 5, after["lines"] }
  end

  # Tables fit from a laptop's width on, no name is broken, and dark is dark.
  def test_tables_fit_and_break_no_names
    folder = new_folder
    path = "#{folder}/report.html"
    File.write(path, Culet::Compare::Report::Html.new(ReportDocuments.fixture).to_s)
    assert_layout(path, ready: "document.documentElement.dataset.charts") { |browser| assert_empty browser.evaluate(FAULTS) }
  end

  # A command as a name is cut in headings and sentences.
  def test_a_long_command_is_no_title
    document = ReportDocuments.small({ "glibc" => 100, "culet" => 50 })
    name = "ruby -e '#{"Array.new(20_000) { |i| i.to_s }; " * 5}'"
    renamed = JSON.parse(JSON.generate(document).gsub(JSON.generate(document["results"].first["workload"]), JSON.generate(name)))
    found = open(renamed)
    assert_sound(found)
    heading = found["headings"].find { |one| one.start_with?("ruby -e") }
    assert_operator heading.size, :<=, 60
    assert heading.end_with?("…")
  end

  def test_it_fits_a_phone
    found = open(ReportDocuments.fixture, width: 390)
    assert_equal 390, found["width"]
    assert_sound(found)
  end

  def test_dark_mode_changes_page_and_charts
    light = open(ReportDocuments.small({ "glibc" => 100, "culet" => 50 }))
    dark = open(ReportDocuments.small({ "glibc" => 100, "culet" => 50 }), scheme: "dark")
    assert_equal ["rgb(253, 253, 252)", "rgb(29, 31, 35)"], light.values_at("background", "stroke")
    assert_equal ["rgb(21, 23, 27)", "rgb(233, 233, 231)"], dark.values_at("background", "stroke")
  end

  def test_markup_in_names_stays_text
    found = open(ReportDocuments.hostile)
    assert_sound(found)
    assert_includes found["headings"], "#{ReportDocuments::HOSTILE.sub("\e", " ")[0, 59].rstrip}…", "a long name is cut"
  end

  def test_documents_that_lack_something_open_too
    edges = ReportDocuments.edges
    names = all_tests? ? edges.keys : ["nothing", "single run", "no baseline", "no samples", "huge", "zero", "many allocators"]
    names.each { |name| assert_sound(open(edges.fetch(name)), name) }
  end
end
