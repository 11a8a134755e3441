# frozen_string_literal: true

require_relative "../retain/documents"
require "culet/model/diagnosis"

# What makes a verdict beside growth: the bytes at stake of each cause.
class ExplainCausesTest < Minitest::Test
  include RetentionDocuments

  Observed = Culet::Diagnosis::ObservedProcess
  # Of which nothing could be read but the sum.
  Tree = Struct.new(:total_pss_bytes) do
    def read_members = []
  end
  # A process whose malloc tells blocks in use, as far as the rules ask.
  Snapshot = Struct.new(:known) do
    def allocator = self

    def blocks? = known
  end
  MEGABYTE = 1_000_000

  def test_peaks_that_are_left_again_are_bloat
    found = diagnosis(in_use: [40, 41, 140, 42, 40, 41])
    assert_equal "bloat", found.verdict
    assert_equal 100 * MEGABYTE, found.causes.list.first.bytes
    assert_match(/\Abloat: the work itself needs 100 MB more at its peaks \(140 MB\) than usually \(40\.0 MB\)\z/, found.sentence)
    assert_equal %w[peak_bytes usual_bytes total_bytes], found.evidence.map(&:name)
  end

  def test_the_job_that_runs_at_the_peaks_is_named
    jobs = [["job=Export", 2, 3], ["job=Small", 0, 6], ["job=Other", 4, 5]]
    assert_match(/, while job=Export runs\z/, diagnosis(in_use: [40, 41, 140, 42, 40, 41], jobs: jobs).sentence)
    refute_match(/while/, diagnosis(in_use: [40, 41, 140, 42, 40, 41], jobs: jobs.drop(1)).sentence)
  end

  def test_a_rise_that_stays_or_what_garbage_explains_is_no_bloat
    assert_equal "none", diagnosis(in_use: [40, 60, 90, 140, 140, 139]).verdict
    assert_equal "none", diagnosis(in_use: [40, 70, 41, 68, 42, 66]).verdict
    assert_equal "none", diagnosis(in_use: [140, 139, 41, 40, 40, 40]).verdict
  end

  def test_garbage_that_adds_up_is_a_late_collector
    found = diagnosis(in_use: [*40.step(140, 10), *40.step(140, 10), 40])
    assert_equal "ruby_heap", found.verdict
    assert_match(/\Athe collector runs late: 100 MB are garbage, beside 40\.0 MB in use/, found.sentence)
  end

  def test_garbage_that_waits_is_a_late_collector
    assert_equal "ruby_heap", diagnosis(garbage: 90).verdict
    assert_match(/\Athe collector runs late: 90\.0 MB are garbage, beside .* in use\z/, diagnosis(garbage: 90).sentence)
    assert_equal "none", diagnosis(garbage: 40).verdict
  end

  def test_code_that_never_ran
    found = diagnosis(unused: { "unused_bytes" => 20 * MEGABYTE, "iseq_bytes" => 30 * MEGABYTE })
    assert_equal ["code", "20.0 MB of 30.0 MB of compiled code never ran"], [found.verdict, found.sentence]
    assert_equal ["unused"], found.remedies.map(&:name)
    assert_equal "none", diagnosis(unused: { "unused_bytes" => 7 * MEGABYTE, "iseq_bytes" => 30 * MEGABYTE }).verdict
  end

  def test_the_limit_goes_first_and_names_the_cause
    limit = { "limit_bytes" => 240 * MEGABYTE, "used_bytes" => 210 * MEGABYTE }
    assert_equal "limit", diagnosis(limit: limit).verdict
    assert_match(/\Aclose to the limit: 210 MB of 240 MB are in use; the program needs them\z/, diagnosis(limit: limit).sentence)
    assert_match(/in use; the collector runs late/, diagnosis(limit: limit, garbage: 90).sentence)
    assert_equal "none", diagnosis(limit: limit.merge("used_bytes" => 200 * MEGABYTE)).verdict
  end

  def test_nothing_is_wrong
    found = diagnosis
    assert_equal ["none", "nothing is wrong: the program needs 200 MB", [], nil], [found.verdict, found.sentence, found.remedies, found.next_step]
  end

  private

  # @param in_use [Array<Integer>] megabytes, one a second
  # @param garbage [Integer, nil] megabytes at each look
  # @param jobs [Array<Array(String, Integer, Integer)>, nil] label, and when it began and ended, as of the black box
  def diagnosis(in_use: [40] * 6, garbage: nil, unused: nil, limit: nil, jobs: nil)
    process = Observed.new(1, "program")
    process.instance_variable_set(:@snapshot, Snapshot.new(true))
    in_use.each_with_index do |megabytes, at|
      process.readings << Observed::Reading.new(at.to_f, Hash.new(0).merge("malloc_used" => megabytes * MEGABYTE), 0, 0)
    end
    moments = [{ "at" => 0.0, "total" => {}, "processes" => [], "limit" => limit }]
    observation = Culet::Diagnosis::Observation.new(seconds: 60.0, moments: moments, processes: [process], tree: Tree.new(200 * MEGABYTE),
                                                    retention: garbage && looks(garbage), problems: [])
    observation.history = history(jobs) if jobs
    Culet::Diagnosis.new(observation, unused: unused)
  end

  def history(jobs)
    event = Struct.new(:label, :started_at, :ended_at)
    events = jobs.map { |label, from, to| event.new(label, from - 0.5, to - 0.5) }
    Culet::Diagnosis::History.new.tap { |history| history.add_box(1, Struct.new(:readings, :events).new([], events)) }
  end

  def looks(megabytes)
    found = analysis(holders: [holder(0, "KEPT", 100_000)], sets: [], unreachable_bytes: megabytes * MEGABYTE)
    Culet::Retention::Growth.new(Array.new(7) { |at| Culet::Retention::Growth::Look.new(at.to_f, found) })
  end
end
