# frozen_string_literal: true

require "test_helper"
require "json"
require "rexml/document"
require_relative "../bench/preamble"
require_relative "../bench/results/page"

# docs/benchmarks.md and the README's chart are what bench/report writes from the result files, and these are complete.
class BenchmarksTest < Minitest::Test
  FOLDER = Bench::ResultFile::FOLDER
  NAMES = Dir.children(FOLDER).grep(/\.json\z/).map { |name| name.delete_suffix(".json") }.sort - ["goals"]

  def test_the_page_and_the_chart_of_the_readme_are_written_from_the_result_files
    differing = Bench::Page.new.files.reject { |path, text| File.exist?(path) && File.read(path, encoding: Encoding::UTF_8) == text }
    assert_empty differing.keys, "run bench/report"
  end

  def test_the_charts_that_the_page_shows_are_drawn
    folder = new_folder
    assert_success(RbConfig.ruby, "-w", File.join(Bench::ROOT, "bench/report"), "--charts", "#{folder}/charts")
    drawn = Dir["#{folder}/charts/*"].to_h { |path| [File.basename(path), File.read(path, encoding: Encoding::UTF_8)] }
    assert_equal File.read(Bench::Page::PAGE, encoding: Encoding::UTF_8).scan(/^<!-- picture: (\S+) /).flatten.sort, drawn.keys.sort
    assert_equal Bench::Page.new.charts, drawn
    drawn.each { |name, text| assert_bars(name, text) }
  end

  NAMES.each do |name|
    define_method("test_result_file_#{name}") do
      file = Bench::ResultFile.load(name)
      refute_empty file.title
      refute_empty file.commands
      assert_match(/\A\d{4}-\d\d-\d\d\z/, file.date)
      %w[ruby glibc cores].each { |key| assert file.environment[key] || file.environment["distribution"], "#{name} lacks #{key}" }
      refute_empty file.rows
      file.rows.each { |row| assert_row(row) }
      assert_equal file.rows.size, file.rows.uniq { |row| [row.subject, row.contender, row.metric] }.size, "a figure stands twice"
    end
  end

  def test_commands_name_benchmarks_that_exist
    commands = NAMES.flat_map { |name| Bench::ResultFile.load(name).commands }.flat_map { |command| command.scan(%r{(?<!ruby-)bench/[\w/-]+}) }.uniq
    assert_operator commands.size, :>, 8
    assert_empty(commands.reject { |path| File.executable?(File.join(Bench::ROOT, path)) })
  end

  def test_every_command_has_help
    Dir.glob("bench/**/*", base: Bench::ROOT).each do |path|
      next unless File.file?(File.join(Bench::ROOT, path)) && File.executable?(File.join(Bench::ROOT, path))

      out, err, status = run_program(File.join(Bench::ROOT, path), "--help")
      assert_predicate status, :success?, "#{path}: #{err}"
      assert_match(/\Ausage: #{path}\b/, out)
      assert_operator out.lines.size, :>, 4, path
    end
  end

  def test_options_reach_the_benchmark
    program = <<~RUBY
      require "./bench/preamble"
      Bench.command("some [options]", "Does some.", runs: [3, "of each"], pause_ms: [nil, "of", Integer], no_calls: [false, "none"]) { |options, arguments| p options, arguments }
    RUBY
    out, = assert_success(RbConfig.ruby, "-w", "-e", program, "--", "--pause-ms", "5", "--no-calls", "x", chdir: Bench::ROOT)
    assert_equal [{ runs: 3, pause_ms: 5, no_calls: true }, ["x"]].map(&:inspect), out.lines(chomp: true)
    _, err, status = run_program(RbConfig.ruby, "-e", program, "--", "--runs", "0", chdir: Bench::ROOT)
    assert_equal [2, "some: invalid argument: --runs 0; at least 1\n"], [status.exitstatus, err]
  end

  # A later `culet compare --json --out docs/benchmarks/NAME.json` takes the place of a transcribed file.
  def test_a_document_of_culet_compare_is_a_result_file
    environment = { "ruby" => "ruby 3.4", "glibc" => "2.41", "command" => "culet compare cpu", "started_at" => "2026-01-02T03:04:05Z" }
    summary = { "peak_rss_bytes" => { "median" => 20_000_000, "low" => 19_000_000, "high" => 21_000_000 },
                "cpu_seconds" => { "median" => 1.5, "low" => nil, "high" => nil } }
    file = Bench::ResultFile.new("new", { "comparisons" => [], "environment" => environment,
                                          "excluded" => [{ "allocator" => "glibc", "workload" => "cpu", "reason" => "it failed" }],
                                          "results" => [{ "workload" => "cpu", "allocator" => "culet", "runs" => [{}, {}], "summary" => summary }] })
    assert_equal ["2026-01-02", ["culet compare cpu"], ["glibc is missing on `cpu`: it failed."]], [file.date, file.commands, file.remarks]
    row = file.find("cpu", "peak RSS", "culet")
    assert_equal [20.0, 19.0, 21.0, "MB", 2], [row.median, row.low, row.high, row.unit, row.runs]
    assert_equal [1.5, nil], file.find("cpu", "CPU time", "culet").to_h.values_at(:median, :low)
  end

  def test_a_written_result_file_is_read
    folder = new_folder
    path = File.join(folder, "some.json")
    rows = [Bench::Row.of([1.0, 2.0, 3.0], factor: 2, subject: "a", contender: "b", metric: "time", unit: "s"),
            Bench::Row.of([nil], subject: "a", contender: "c", metric: "time", unit: "s")]
    Bench::ResultFile.write(path, title: "Some", rows: rows, command: "some")
    file = Bench::ResultFile.new("some", JSON.parse(File.read(path)))
    assert_equal [[4.0, 3]], file.rows.map { |row| [row.median, row.runs] }
    assert_operator file.environment["cores"], :>, 0
  end

  def test_a_goal_that_some_figures_may_miss
    rows = [1, 2, 3].product(%w[culet glibc]).map { |number, name| Bench::Row.new(subject: number.to_s, contender: name, metric: "time", unit: "s", median: name == "culet" ? number : 2) }
    document = { "title" => "t", "command" => "c", "date" => "d", "environment" => {}, "remarks" => [],
                 "results" => rows.map { |row| row.to_h.transform_keys(&:to_s) } }
    file = Bench::ResultFile.new("some", document)
    figures = %w[1 2 3].map { |name| { "result" => ["some", name, "time", "culet"], "to" => "best" } }
    { nil => "2 of 3", 1 => "yes, 2 of 3", 0 => "**no**, 2 of 3" }.each do |misses, verdict|
      goal = { "goal" => "g", "family" => "f", "most" => 1.0, "misses" => misses, "figures" => figures }
      assert_equal "| [g](#f) | 0.50, 1.000, 1.50 | #{verdict} |", Bench::Goals.new({ "some" => file }, [goal]).to_s.lines.last.chomp
    end
  end

  private

  # Each bar with its label and figure.
  def assert_bars(name, text)
    image = REXML::Document.new(text).root
    bars = REXML::XPath.match(image, "//*[contains(@class, 'bar') or contains(@class, 'culet')]").grep(REXML::Element)
    assert_operator bars.size, :>, 1, name
    assert_operator REXML::XPath.match(image, "//*[local-name()='text']").size, :>, bars.size, name
  end

  def assert_row(row)
    assert [row.subject, row.contender, row.metric].all? { |text| text.is_a?(String) && !text.empty? }, row.to_h
    assert_kind_of String, row.unit, row.to_h
    assert_kind_of Numeric, row.median, row.to_h
    assert row.low.nil? || row.median.between?(row.low, row.high), row.to_h
  end
end
