# frozen_string_literal: true

require "json"
require_relative "../fixtures/compare_document"

# Result documents for the tests of the reports: the fixture, and what can be
# different about one.
module ReportDocuments
  # Text that is markup, code, or a terminal's control sequence where it is not escaped.
  HOSTILE = %(</script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">|`*_\e[31m'&amp;)

  module_function

  # @return [Hash] a fresh copy of the fixture, 3 workloads and 6 allocators
  def fixture = JSON.parse(COMPARE_DOCUMENT)

  # @return [Hash] one workload, made from peaks in MB by allocator; the ratios and
  #   verdicts as given: allocator to [median, low, high, verdict]
  def small(peaks, comparisons: {}, workload: "threads", baseline: "glibc", runs: 5, excluded: [])
    results = peaks.map do |allocator, peak|
      bytes = (peak * 1_000_000).round
      run = lambda { |number|
        { "run" => number, "order" => number, "peak_rss_bytes" => bytes, "mean_rss_bytes" => bytes / 2, "cpu_seconds" => 1.5, "wall_seconds" => 1.0,
                     "samples" => [[0.0, bytes / 10], [0.5, bytes], [1.0, bytes / 2]].map do |at, rss|
                       { "at_seconds" => at, "rss_bytes" => rss, "processes" => 1 }
                     end }
      }
      same = ->(value) { { "median" => value, "low" => value, "high" => value } }
      { "workload" => workload, "allocator" => allocator, "runs" => (1..runs).map(&run),
        "summary" => { "peak_rss_bytes" => same.call(bytes), "mean_rss_bytes" => same.call(bytes / 2), "cpu_seconds" => same.call(1.5), "wall_seconds" => same.call(1.0) } }
    end
    compared = comparisons.map do |allocator, (median, low, high, verdict)|
      { "workload" => workload, "allocator" => allocator, "baseline" => baseline, "metric" => "peak_rss_bytes",
        "ratio" => { "median" => median, "low" => low, "high" => high }, "verdict" => verdict, "runs" => runs }
    end
    { "culet" => "0.1.0", "complete" => true, "environment" => { "ruby" => "3.1.2", "cores" => 2, "command" => "culet compare #{workload}" },
      "allocators" => peaks.keys.map { |name| { "name" => name, "version" => nil, "library" => nil, "environment" => {} } },
      "results" => results, "comparisons" => compared, "excluded" => excluded }
  end

  # @return [Hash{String => Hash}] documents that lack something, by what they lack
  def edges
    pair = { "glibc" => 100, "culet" => 50 }
    smaller = { "culet" => [0.5, 0.45, 0.55, "smaller"] }
    incomplete = small(pair, comparisons: smaller).merge("complete" => false)
    no_pss = fixture.tap { |document| document["results"].each { |result| result["summary"].reject! { |key, _| key.include?("pss") } } }
    no_samples = small(pair, comparisons: smaller).tap { |document| document["results"].each { |result| result["runs"].each { |run| run["samples"] = [] } } }
    { "nothing" => { "culet" => "0.1.0", "complete" => true, "environment" => {}, "allocators" => [], "results" => [], "comparisons" => [], "excluded" => [] },
      "no keys" => {},
      "single run" => small(pair, comparisons: { "culet" => [0.5, 0.5, 0.5, "no difference shown"] }, runs: 1),
      "incomplete" => incomplete,
      "one allocator" => small({ "culet" => 50 }),
      "no baseline" => small({ "jemalloc" => 70, "culet" => 50 }),
      "no culet" => small({ "glibc" => 100, "jemalloc" => 70 }, comparisons: { "jemalloc" => [0.7, 0.6, 0.8, "smaller"] }),
      "culet as baseline" => small(pair, comparisons: { "glibc" => [2.0, 1.9, 2.1, "larger"] }, baseline: "culet"),
      "no pss" => no_pss,
      "no samples" => no_samples,
      "all excluded" => small({}, excluded: [{ "workload" => "threads", "allocator" => "culet", "run" => nil, "reason" => "it crashed", "remedy" => nil }]),
      "huge" => small({ "glibc" => 9e12, "culet" => 4e12 }, comparisons: { "culet" => [0.44, 0.4, 0.5, "smaller"] }),
      "zero" => small({ "glibc" => 0, "culet" => 0 }),
      "many allocators" => small((1..12).to_h { |number| ["glibc:arena_max=#{number}", number * 10] }),
      "hostile" => hostile }
  end

  # @return [Hash] every text of a small document replaced by markup
  def hostile
    document = small({ HOSTILE => 100, "culet" => 50 }, comparisons: { "culet" => [0.5, 0.45, 0.55, "smaller"] }, workload: HOSTILE, baseline: HOSTILE,
                     excluded: [{ "workload" => HOSTILE, "allocator" => HOSTILE, "run" => 2, "reason" => HOSTILE, "remedy" => HOSTILE },
                                { "workload" => nil, "allocator" => HOSTILE, "run" => nil, "reason" => HOSTILE, "remedy" => nil }])
    document["environment"] = { "ruby" => HOSTILE, HOSTILE => HOSTILE, "command" => HOSTILE, "started_at" => HOSTILE }
    document["allocators"].each { |entry| entry.update("version" => HOSTILE, "library" => HOSTILE, "environment" => { HOSTILE => HOSTILE }) }
    document["culet"] = HOSTILE
    document
  end
end
