# frozen_string_literal: true

require_relative "../retain/documents"
require "culet/model/diagnosis"

# What makes a verdict beside growth: the bytes at stake of each cause.
class ExplainCausesTest < Minitest::Test
  include RetentionDocuments

  Observed = Culet::Diagnosis::ObservedProcess
  # Of which nothing could be read but the sum.
  Tree = Struct.new(:total_pss_bytes, :members) do
    def read_members = members.to_a
  end
  Member = Struct.new(:pid, :parent_pid, :snapshot, :forked)
  # A process whose malloc tells blocks in use, as far as the rules ask. runs: its pages, and bytes in use of each.
  Region = Struct.new(:start, :fill_runs) { def malloc? = true }
  Snapshot = Struct.new(:known, :arenas, :runs) do
    def allocator = self

    def name = "other"

    def blocks? = known

    def malloc = self

    def process = self

    def page_bytes = MEGABYTE

    def trim_bytes = 0

    def regions = [Region.new(0, runs)]

    def ruby = nil
  end
  Arena = Struct.new(:free_bytes)
  MEGABYTE = 1_000_000

  def test_peaks_that_are_left_again_are_bloat
    found = diagnosis(in_use: [40, 41, 140, 42, 40, 41])
    assert_equal "bloat", found.verdict
    assert_equal 100 * MEGABYTE, found.causes.list.first.bytes
    assert_match(/\Abloat: the work itself needs 100 MB more at its peaks \(140 MB\) than usually \(40\.0 MB\)\z/, found.sentence)
    assert_equal %w[peak_bytes usual_bytes total_bytes], found.evidence.map(&:name)
  end

  def test_memory_that_falls_between_most_readings_leaves_the_verdict_open
    often = [40, 140, 60, 150, 40, 130, 50, 140, 40]
    found = diagnosis(in_use: often)
    assert_equal ["unknown", "cannot tell yet: memory in use falls too often to tell work that peaks from garbage"], [found.verdict, found.sentence]
    assert_equal "bloat", diagnosis(in_use: often, look: { kept: [5, 90, 5, 5, 5, 90, 5].map { |megabytes| megabytes * MEGABYTE } }).verdict
    assert_equal "malloc_free", diagnosis(in_use: often, free: [80] * often.size, levels: { "malloc_free" => 80 }).verdict
  end

  # Memory is added evenly: garbage until a collection, unless the looks show what is in use.
  def test_looks_that_fall_or_end_high_show_work_that_peaks
    slowly = [*40..140].each_slice(10).map(&:first) * 2
    verdicts = [[5, 90, 5, 5, 5, 90, 5], [90, 5, 5, 5, 5, 5, 5], [5, 5, 5, 5, 5, 5, 90], [5, 80, 95, 95, 95, 95, 95]].map do |kept|
      diagnosis(in_use: slowly, look: { kept: kept.map { |megabytes| megabytes * MEGABYTE } }).verdict
    end
    assert_equal %w[bloat bloat bloat ruby_heap], verdicts
  end

  # GC.disable, and a collection by hand now and then.
  def test_a_swing_of_garbage_alone_is_no_work_where_the_collector_is_off
    looks = [0, 90, 0, 90, 0, 90, 0].each_with_index.map do |megabytes, at|
      Culet::Retention::Growth::Look.new(at.to_f, analysis(holders: [holder(0, "KEPT", 100_000)], sets: [], pid: 1, unreachable_bytes: megabytes * MEGABYTE))
    end
    verdicts = [false, true].map do |off|
      observation = diagnosis(in_use: [40, 41, 140, 42, 40, 41], look: {}).observation
      observation.retention = Culet::Retention::Growth.new(looks)
      observation.collector = Culet::CollectorLimits.new({ "gc_disabled" => off }, settings: nil)
      { inflated?: false, remedies: Culet::Remedies.new([]) }.each { |name, value| observation.define_singleton_method(name) { value } }
      Culet::Diagnosis::Causes.new(observation).list.first.name
    end
    assert_equal %w[bloat ruby_heap], verdicts
  end

  def test_an_agent_tells_what_is_in_use_where_the_malloc_cannot_be_read
    usual = [40, 41, 42] * 4
    assert_equal "bloat", diagnosis(counted: [*usual, 140, *usual]).verdict
    assert_equal "none", diagnosis(counted: usual * 2).verdict
    assert_equal "none", diagnosis(counted: [*[nil] * 20, 40, 140, 40]).verdict
  end

  # Figures in between have the last count of malloc: garbage that is seen at few of them seems to come at once.
  def test_few_counts_by_an_agent_do_not_tell_peaks_from_garbage
    slowly = (40..140).step(20).flat_map { |megabytes| [megabytes] * 5 }
    assert_equal "none", diagnosis(counted: [*slowly, 40]).verdict
  end

  def test_the_job_that_runs_at_the_peaks_is_named
    jobs = [["job=Export", 2, 3], ["job=Small", 0, 6], ["job=Other", 4, 5]]
    assert_match(/, while job=Export runs\z/, diagnosis(in_use: [40, 41, 140, 42, 40, 41], jobs: jobs).sentence)
    refute_match(/while/, diagnosis(in_use: [40, 41, 140, 42, 40, 41], jobs: jobs.drop(1)).sentence)
  end

  def test_the_job_that_runs_at_peaks_that_only_the_resident_size_shows_is_named
    found = diagnosis(resident: [80, 81, 180, 82, 80, 81], jobs: [["job=Export", 2, 3], ["job=Small", 0, 6]])
    assert_match(/100 MB more at its peaks \(180 MB\).*, while job=Export runs\z/, found.sentence)
  end

  def test_free_memory_behind_peaks_is_theirs_up_to_their_size_in_each_arena
    found = diagnosis(in_use: [40, 41, 140, 42, 40, 41], levels: { "malloc_free" => 50 }, arenas: [30, 20])
    assert_equal [["bloat", 150 * MEGABYTE]], found.causes.list.map { |cause| [cause.name, cause.bytes] }
    assert_match(/, and malloc keeps 50\.0 MB behind them\z/, found.sentence)
    found = diagnosis(in_use: [40, 41, 140, 42, 40, 41], levels: { "malloc_free" => 320 }, arenas: [300, 20])
    assert_equal [["bloat", 220], ["malloc_free", 200]], found.causes.list.map { |cause| [cause.name, cause.bytes / MEGABYTE] }
  end

  def test_free_memory_that_a_collection_has_just_left_is_not_kept
    kept = { levels: { "malloc_free" => 100 } }
    assert_equal "malloc_free", diagnosis(free: [100] * 6, **kept).verdict
    assert_equal "none", diagnosis(in_use: [*[130] * 10, 40, 40], free: [*[10] * 10, 100, 100], **kept).verdict
  end

  # In a program under load the same amount is free at all times, of other pages.
  def test_free_memory_that_is_in_use_in_turns_is_not_kept
    free = { in_use: [50] * 6, free: [50] * 6, levels: { "malloc_free" => 50 } }
    assert_equal "malloc_free", diagnosis(**free).verdict
    assert_equal "none", diagnosis(**free, turns: true).verdict
  end

  # A program that forks all the time has a PSS of half its memory while a child lives.
  def test_no_part_is_larger_than_the_whole
    found = diagnosis(free: [240] * 6, levels: { "malloc_free" => 240, "malloc_used" => 60, "libraries_and_files" => 100 })
    assert_match(/\Amalloc keeps 240 MB of free memory, 80 % of all that the processes use/, found.sentence)
    assert_equal 300 * MEGABYTE, found.evidence.find { |one| one.name == "total_bytes" }.value
  end

  def test_looks_tell_what_is_free_where_the_malloc_does_not
    levels = { "malloc_unsplit" => 100 }
    used = { kept: 4 * MEGABYTE, malloc_in_use_bytes: 40 * MEGABYTE }
    found = diagnosis(levels: levels, look: used)
    assert_equal "malloc_free", found.verdict
    assert_match(/\Amalloc keeps 60\.0 MB of free memory, 30 % /, found.sentence)
    assert_equal "none", diagnosis(levels: levels, look: used, counted: [40, *[90] * 12]).verdict, "the agent has seen more"
    found = diagnosis(levels: levels)
    assert_equal ["unknown", "cannot tell yet: its malloc does not show how much of 100 MB is free"], [found.verdict, found.sentence], "nobody looked"
    assert_equal "none", diagnosis(levels: { "malloc_unsplit" => 20 }).verdict, "it is small"
  end

  def test_looks_tell_garbage_in_slots_from_objects
    found = diagnosis(levels: { "ruby_objects" => 100 }, look: { kept: 30 * MEGABYTE, slot_bytes: 30 * MEGABYTE, malloc_bytes: 0 })
    assert_equal "ruby_heap", found.verdict
    assert_match(/70\.0 MB of its pages are free slots or garbage, beside 30\.0 MB of objects in use/, found.sentence)
    assert_equal "none", diagnosis(levels: { "ruby_objects" => 100 }).verdict, "nobody looked"
  end

  # On a busy machine the copy of a look may get no processor.
  def test_a_heap_that_an_agent_could_have_looked_at_leaves_the_verdict_open
    usual = [40, 41, 42] * 4
    found = diagnosis(levels: { "ruby_objects" => 100 }, counted: usual, looks_late: true)
    assert_equal ["unknown", "cannot tell yet: too few looks at the heap tell garbage from objects in use"], [found.verdict, found.sentence]
    assert_equal "none", diagnosis(levels: { "ruby_objects" => 20 }, counted: usual, looks_late: true).verdict, "a small heap"
    assert_equal "none", diagnosis(levels: { "ruby_objects" => 100 }, counted: usual).verdict, "the looks were given up"
  end

  # What seems to be a cause may be a part of it.
  def test_a_large_growth_that_nobody_looked_at_leaves_the_verdict_open
    free = { levels: { "malloc_free" => 100 }, free: [100] * 24 }
    rising = Array.new(24) { |at| 40 + (4 * at) }
    assert_equal "unknown", diagnosis(in_use: rising, **free).verdict
    found = diagnosis(in_use: rising.map { |one| 40 + ((one - 40) / 8.0) }, **free)
    assert_equal ["malloc_free", 1], [found.verdict, found.remarks.grep(/grew by .* a minute meanwhile/).size], found.sentence
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

  # Ruby 4.1 has a heap for each of twelve sizes.
  def test_a_heap_that_ruby_has_from_the_start_is_not_sparse
    levels = { "ruby_objects" => 2, "ruby_free_slots" => 58 }
    assert_equal "ruby_heap", diagnosis(levels: levels).verdict
    assert_equal "none", diagnosis(levels: levels, initial_heap: 61).verdict
    assert_equal 57.5 * MEGABYTE, diagnosis(levels: levels, initial_heap: 31).causes.list.first.bytes
  end

  def test_the_heaps_that_a_process_has_from_the_start
    sizes = [40, 80, 160].map { |bytes| { "slot_bytes" => bytes, "pages" => bytes == 80 ? 0 : 3, "live" => 1, "free" => 0 } }
    heap = Struct.new(:ruby).new(Struct.new(:slots).new(sizes))
    members = [Member.new(1, nil, heap, false), Member.new(2, 1, heap, true), Member.new(3, nil, Struct.new(:ruby).new(nil), false)]
    assert_equal 2 * 2560 * 1024, Culet::Diagnosis::Observation.new(tree: Tree.new(0, members)).initial_heap_bytes
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

  def test_workers_that_loaded_the_program_share_little
    found = cluster(parent: [20, 20], workers: [[20, 60, 62], [58, 64, 61], [63]])
    assert_equal "sharing", found.verdict
    assert_match(/\Athe workers share little: each of the 3 loaded 40\.0 MB by itself after the fork\z/, found.sentence)
    assert_equal [["workers", 3], ["loaded_bytes", 40 * MEGABYTE]], found.evidence.first(2).map { |one| [one.name, one.value] }
  end

  # What adds up until a collection was not loaded.
  def test_garbage_of_workers_was_not_loaded
    refute_equal "sharing", cluster(parent: [35], workers: [[40, 95, 50, 98], [90, 48, 97, 52]]).verdict
    refute_equal "sharing", cluster(parent: [35], workers: [[40], [95]]).verdict, "they differ"
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

  def test_no_cause_stands_out_where_the_remedies_save_much
    { 30 => "no single cause stands out: the first remedy saves 30.0 MB of 200 MB", 29 => "nothing is wrong: the program needs 200 MB" }.each do |saved, sentence|
      found = diagnosis
      found.define_singleton_method(:remedies) { [Struct.new(:saves_bytes).new(saved * MEGABYTE)] }
      assert_equal ["none", sentence], [found.verdict, found.sentence]
    end
  end

  private

  # @param in_use [Array<Integer>] megabytes, one a second
  # @param free [Array<Integer>] megabytes of malloc_free, one a second
  # @param resident [Array<Integer>] megabytes, one a second
  # @param counted [Array<Integer, nil>, nil] megabytes in use that the agent tells, one a second; nil: the blocks are known
  # @param turns [Boolean] whether what is free at a reading is in use at the next one
  # @param levels [Hash{String => Integer}] megabytes of the process at the end
  # @param arenas [Array<Integer>] megabytes free in each
  # @param garbage [Integer, nil] megabytes at each look
  # @param look [Hash, nil] what each look has found; kept: bytes of a holder, at all looks or at each
  # @param looks_late [Boolean] whether most looks are missing
  # @param initial_heap [Integer] megabytes up to which Ruby's heap grows without a collection
  # @param jobs [Array<Array(String, Integer, Integer)>, nil] label, and when it began and ended, as of the black box
  def diagnosis(in_use: [40] * 6, free: [0] * in_use.size, resident: [], counted: nil, turns: false, levels: {}, arenas: [], garbage: nil, look: nil,
                looks_late: false, unused: nil, limit: nil, initial_heap: 0, jobs: nil)
    process = observed(in_use, free, turns, levels, arenas, known: counted.nil?)
    resident = [80] * counted.size if counted
    moments = [0, *resident].each_with_index.map do |megabytes, at|
      { "at" => [at - 1, 0].max.to_f, "total" => {}, "processes" => at.zero? ? [] : [{ "pid" => 1, "rss_bytes" => megabytes * MEGABYTE, "cpu_seconds" => 0 }], "limit" => limit }
    end
    counted&.each_with_index { |megabytes, at| tell(moments[at + 1]["processes"].first, megabytes) }
    look ||= { unreachable_bytes: garbage * MEGABYTE } if garbage
    observation = Culet::Diagnosis::Observation.new(seconds: 60.0, moments: moments, processes: [process], tree: Tree.new(200 * MEGABYTE),
                                                    retention: look && looks(**look), looks_late: looks_late, problems: [])
    part = Culet::Savings::Part.new(snapshot: process.snapshot, levels: bytes(levels))
    observation.define_singleton_method(:parts) { [part] }
    observation.define_singleton_method(:initial_heap_bytes) { initial_heap * MEGABYTE }
    observation.history = history(process, jobs) if jobs
    Culet::Diagnosis.new(observation, unused: unused)
  end

  # @param parent [Array<Integer>] megabytes in use at its readings
  # @param workers [Array<Array<Integer>>] those of each worker
  def cluster(parent:, workers:)
    processes = [parent, *workers].each_with_index.map { |in_use, pid| observed(in_use, [0] * in_use.size, false, {}, [], known: true, pid: pid) }
    members = processes.map { |one| Member.new(one.pid, one.pid.zero? ? nil : 0, one.snapshot, false) }
    tree = Tree.new(200 * MEGABYTE, members)
    observation = Culet::Diagnosis::Observation.new(seconds: 60.0, moments: [{ "at" => 0.0, "total" => {}, "processes" => [] }], processes: processes, tree: tree, problems: [])
    observation.define_singleton_method(:remedies) { Culet::Remedies.new([]) }
    observation.define_singleton_method(:parts) { [] }
    Culet::Diagnosis.new(observation)
  end

  def tell(process, megabytes)
    process["figures"] = { "levels" => bytes({ "ruby_objects" => 0, "malloc_used" => megabytes }.compact), "malloc_used_bytes" => megabytes && (megabytes * MEGABYTE) }
  end

  def observed(in_use, free, turns, levels, arenas, known:, pid: 1)
    process = Observed.new(pid, "program")
    process.instance_variable_set(:@snapshot, Snapshot.new(known, arenas.map { |megabytes| Arena.new(megabytes * MEGABYTE) }))
    in_use.zip(free).each_with_index do |(used, unused), at|
      found = Hash.new(0).merge(bytes({ "malloc_used" => used, "malloc_free" => unused, **levels.except("malloc_free") }))
      process.readings << Observed::Reading.new(at.to_f, found, 0, 0)
      runs = [[used.to_i, 1], [unused, 0]]
      process.reuse.add(Snapshot.new(true, [], turns && at.odd? ? runs.reverse : runs), found)
    end
    process
  end

  def bytes(levels) = levels.transform_values { |megabytes| (megabytes * MEGABYTE).round }

  def history(process, jobs)
    event = Struct.new(:label, :started_at, :ended_at)
    events = jobs.map { |label, from, to| event.new(label, from - 0.5, to - 0.5) }
    Culet::Diagnosis::History.new.tap { |history| history.add_box(process, Struct.new(:readings, :events).new([], events)) }
  end

  def looks(kept: 100_000, **fields)
    found = Array(kept).cycle.first(7).each_with_index.map do |bytes, at|
      kept_now = analysis(holders: [holder(0, "KEPT", bytes)], sets: [], pid: 1, **fields)
      Culet::Retention::Growth::Look.new(at.to_f, kept_now)
    end
    Culet::Retention::Growth.new(found)
  end
end
