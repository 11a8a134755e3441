# frozen_string_literal: true

require_relative "../retain/documents"
require "culet/model/diagnosis"
require "culet/model/profile"
require "culet/model/retention/growth"

# What counts as growth, step by step: which proof goes before which, and what is left undecided.
class ExplainGrowthTest < Minitest::Test
  include RetentionDocuments

  Growth = Culet::Diagnosis::Growth
  # A process whose malloc tells blocks in use, as far as the rules ask.
  Snapshot = Struct.new(:known) do
    def allocator = self

    def blocks? = known
  end
  MEGABYTE = 1_000_000
  RISING = Array.new(24) { |at| at * MEGABYTE }.freeze
  FLAT = ([0] * 24).freeze
  # Of 100 bytes each.
  BLOCKS = RISING.map { |bytes| bytes / 100 }.freeze
  # Minor and major ones.
  COLLECTIONS = Array.new(24) { |at| [at, at / 6] }.freeze

  def test_a_holder_that_keeps_more_is_a_leak_of_ruby_objects
    found = growth(malloc: RISING, kept: [1, 2, 3, 4, 5, 6, 7].map { |one| one * 100_000 })
    assert_equal [:ruby, "LEAK"], [found.verdict, *found.holders.map { |row| row.keeper.name }]
    value, low, high = found.per_minute
    assert_in_delta 6_000_000, value, 10
    assert_includes low..high, value
  end

  def test_each_of_the_holders_that_add_most_is_named
    steps = [1, 2, 3, 4, 5, 6, 7]
    found = growth(malloc: RISING, kept: steps.map { |one| one * 100_000 }, beside: { "CACHE" => steps.map { |one| one * 200_000 }, "LOG" => steps.map { |one| one * 20_000 } })
    assert_equal %w[CACHE LEAK], found.holders.map { |row| row.keeper.name }
    assert_equal [12, 6, 19.2], [*found.holders.map { |row| found.per_minute([row]).first }, found.per_minute.first].map { |rate| (rate / MEGABYTE).round(3) }
    assert_match(/\Aa leak of Ruby objects: constant CACHE \(.*\) keeps 12\.0 MB more a minute; constant LEAK \(.*\) keeps 6\.00 MB more a minute\z/, Culet::Diagnosis.new(found.observation).sentence)
  end

  def test_a_member_of_what_the_holder_leads_to_is_named
    found = growth(malloc: RISING, kept: [1, 2, 3, 4, 5, 6, 7].map { |one| one * 100_000 })
    found.observation.retention.define_singleton_method(:member) { |_| "Prices @by_customer" }
    assert_match(/ keeps 6\.00 MB more a minute, in Prices @by_customer\z/, Culet::Diagnosis.new(found.observation).sentence)
  end

  # The line that allocates most is not said of each.
  def test_a_line_is_said_of_a_holder_that_is_alone
    steps = [1, 2, 3, 4, 5, 6, 7].map { |one| one * 100_000 }
    told = [{}, { "CACHE" => steps }].map do |beside|
      found = growth(malloc: RISING, kept: steps, beside: beside)
      found.define_singleton_method(:site) { Struct.new(:name).new("page.rb:11") }
      found.holders.map { |row| found.origin(row) }
    end
    assert_equal [[", allocated in page.rb:11"], ["", ""]], told
  end

  # Objects of extensions do not report all of their memory, or the leak is another one.
  def test_native_memory_that_grows_beside_a_holder_is_told
    kept = [1, 2, 3, 4, 5, 6, 7].map { |one| one * 100_000 }
    found = growth(malloc: RISING, kept: kept, native: [1, 2, 3, 4, 5, 6, 7])
    assert_equal :ruby, found.verdict
    { total_bytes: 100 * MEGABYTE, members: [] }.each { |name, value| found.observation.define_singleton_method(name) { value } }
    diagnosis = Culet::Diagnosis.new(found.observation)
    assert_match(/ keeps 6\.00 MB more a minute; native memory, which these objects may own, grows by 60\.0 MB a minute\z/, diagnosis.sentence)
    assert_equal ["growth per minute 6.00 MB", "native growth per minute 60.0 MB"], diagnosis.evidence.first(2).map { |one| "#{one.title} #{one.amount}" }
    assert_nil growth(malloc: RISING, kept: kept, native: [3] * 7).native_beside
  end

  def test_the_reason_of_native_memory_names_a_class_whose_objects_grow_in_number
    native = growth(malloc: RISING, kept: [100_000] * 7, native: [1, 2, 3, 4, 5, 6, 7])
    assert_equal "no Ruby object keeps it", native.native_reason
    retention = native.observation.retention
    retention.define_singleton_method(:classes) { |**| [Struct.new(:name).new("Zlib::Deflate")] }
    keepers = [nil, Culet::Retention::Growth::Row.new([], retention.analysis.holders.first, 1)]
    retention.define_singleton_method(:keeper_of) { |_| keepers.shift }
    ["holders keep", "constant LEAK (/app/lib/shop.rb:12) keeps"].each do |words|
      assert_equal "no Ruby object reports it; #{words} ever more Zlib::Deflate objects", native.native_reason
    end
  end

  # Two are read; the moments have the resident memory of all.
  def test_a_process_that_grows_and_was_not_read_leaves_the_verdict_open
    found = growth(malloc: FLAT)
    moments = Array.new(24) do |at|
      sizes = { 1 => 60, 3 => 50 + at }
      { "at" => at.to_f, "processes" => sizes.map { |pid, size| { "pid" => pid, "parent_pid" => 0, "ruby" => true, "rss_bytes" => size * MEGABYTE } } }
    end
    { moments: moments, total_bytes: 100 * MEGABYTE, members: [] }.each { |name, value| found.observation.define_singleton_method(name) { value } }
    assert_equal 3, found.unread
    diagnosis = Culet::Diagnosis.new(found.observation)
    assert_equal ["unknown", "look at that process: culet explain 3"], [diagnosis.verdict, diagnosis.next_step]
    assert_match(/\Acannot tell yet: process 3, whose memory was not read, grows all the time\z/, diagnosis.sentence)
    moments.each { |moment| moment["processes"].last["rss_bytes"] = 50 * MEGABYTE }
    refute Growth.new(found.observation).unread
  end

  # Entries that are thrown out every 20 s, and fewer than come.
  def test_objects_that_grow_in_teeth_leave_the_verdict_open
    assert_equal :undecided, growth(malloc: RISING, kept: [4.3, 8.2, 7.3, 11.3, 10.5, 14.5, 13.3].map { |one| (one * MEGABYTE).round }).verdict
  end

  # A buffer that doubles is no holder that grows at each look, and what grows until it is full is none.
  def test_objects_that_take_more_without_such_a_holder_leave_the_verdict_open
    leaps = [10, 10.1, 20, 20.1, 20, 40, 40.1].map { |one| (one * MEGABYTE).round }
    found = growth(malloc: FLAT, kept: leaps)
    assert_equal [:objects, false], [found.verdict, found.leak?]
    { total_bytes: 100 * MEGABYTE, members: [] }.each { |name, value| found.observation.define_singleton_method(name) { value } }
    assert_match(/\Acannot tell yet: what the objects of process 1 take grows by \d+ MB a minute, and no holder/, Culet::Diagnosis.new(found.observation).sentence)
    assert_equal :none, growth(malloc: FLAT, kept: [3, 6, 9, 12, 15, 17, 17].map { |one| one * MEGABYTE }).verdict
  end

  def test_native_memory_that_grows_beside_what_ruby_knows_of_is_a_native_leak
    assert_equal :native, growth(malloc: RISING, kept: [100_000] * 7, native: [1, 2, 3, 4, 5, 6, 7]).verdict
  end

  # The looks are few: noise as of a busy program hides a slow leak from them alone.
  def test_native_memory_counts_sooner_where_all_memory_rises
    noisy = [1, 3, 2, 4, 3, 5, 6]
    assert_equal :native, growth(malloc: RISING, kept: [100_000] * 7, native: noisy).verdict
    assert_equal :none, growth(malloc: FLAT, kept: [100_000] * 7, native: noisy).verdict
  end

  # Objects that come and go take blocks that are larger than what Ruby knows of.
  def test_native_memory_that_grows_by_a_small_part_of_objects_is_none
    native = [1, 2, 3, 4, 5, 6, 7]
    assert_equal :none, growth(malloc: RISING, kept: [100_000] * 7, native: native, garbage: native.map { |one| 10 * one }).verdict
    assert_equal :native, growth(malloc: RISING, kept: [100_000] * 7, native: native, garbage: native.map { |one| 2 * one }).verdict
  end

  # 60,000 rows at the first two looks.
  def test_native_memory_that_grows_by_a_small_part_of_objects_that_go_is_none
    native = [7.22, 7.23, 7.86, 8.0, 8.2, 8.4, 8.6]
    assert_equal :none, growth(malloc: RISING, kept: [100_000] * 7, native: native, garbage: [67, 67, 0, 0, 0, 0, 0]).verdict
    assert_equal :native, growth(malloc: RISING, kept: [100_000] * 7, native: native).verdict
  end

  # Words on one stack may be left over from calls; a pool that starts a thread is no leak either.
  def test_stacks_count_where_threads_grow_in_number
    { [1, 1, 1, 1, 1, 1, 1] => :native, [1, 1, 1, 1, 1, 2, 2] => :native, [1, 3, 5, 7, 9, 11, 13] => :ruby }.each do |threads, verdict|
      found = growth(malloc: RISING, kept: [100_000] * 7, native: [1, 2, 3, 4, 5, 6, 7], threads: threads)
      assert_equal verdict, found.verdict, threads
    end
    found = growth(malloc: RISING, kept: [100_000] * 7, threads: [1, 3, 5, 7, 9, 11, 13])
    assert_match(/\Aa leak of Ruby objects: a growing set of 13 threads keeps 36\.0 MB more a minute\z/, Culet::Diagnosis.new(found.observation).sentence)
  end

  def test_memory_in_use_that_looks_explain_is_no_leak
    assert_equal :none, growth(malloc: RISING, kept: [100_000] * 7, native: [3, 3, 3, 3, 3, 3, 3]).verdict
  end

  def test_native_memory_that_slows_down_is_undecided
    assert_equal :undecided, growth(malloc: RISING, kept: [100_000] * 7, native: [1, 5, 9, 12, 12.1, 12.2, 12.3]).verdict
  end

  def test_blocks_without_objects_that_stay_are_native
    found = growth(malloc: RISING, blocks: BLOCKS)
    assert_equal [:native, "Ruby's objects do not grow in number"], [found.verdict, found.native_reason]
    some = BLOCKS.map { |count| count / 10 }
    assert_equal :native, growth(malloc: RISING, blocks: BLOCKS, old: some).verdict, "an object may have some blocks"
    assert_equal :unclear, growth(malloc: RISING, blocks: BLOCKS, old: BLOCKS.map { |count| count / 2 }, collections: [3] * 24).verdict
  end

  def test_large_blocks_do_not_tell_the_kind
    assert_equal :unclear, growth(malloc: RISING, blocks: RISING.map { |one| one / 10_000 }).verdict
  end

  def test_nothing_is_guessed_of_a_process_whose_agent_was_not_asked_in_time
    assert_equal :unclear, growth(malloc: RISING, blocks: BLOCKS, agent: true).verdict
    assert_equal :ruby, growth(malloc: RISING, old: BLOCKS, known: false).verdict
    assert_equal :unclear, growth(malloc: RISING, old: BLOCKS, known: false, agent: true).verdict
  end

  # What is old may be garbage until a major collection, and what is young any time.
  def test_objects_that_stay_count_once_collections_were_seen
    assert_equal :ruby, growth(malloc: RISING, blocks: BLOCKS, old: BLOCKS).verdict
    assert_equal :unclear, growth(malloc: RISING, blocks: BLOCKS, old: BLOCKS, collections: (1..24).map { |count| [count, 3] }).verdict
    assert_equal :unclear, growth(malloc: RISING, blocks: BLOCKS, collections: (1..24).map { |count| [count / 4, count / 4] }).verdict
  end

  def test_memory_that_libraries_map_by_themselves_counts
    found = growth(malloc: FLAT, other: RISING)
    assert_equal [:unclear, MEGABYTE * 60], [found.verdict, found.per_minute.first.round]
    found = growth(malloc: FLAT, other: RISING, kept: [100_000] * 7, native: [3] * 7)
    assert_equal [:native, MEGABYTE * 60], [found.verdict, found.per_minute.first.round]
    assert_match(/, and libraries map it outside of malloc\z/, Culet::Diagnosis.new(found.observation).sentence)
    assert_equal :undecided, growth(malloc: FLAT, other: RISING, kept: [100_000] * 7, load: [0.1, 0.2, 0.4]).verdict
    assert_equal :native, growth(malloc: FLAT, other: RISING, kept: [100_000] * 7, native: [3] * 7, before: [50] * 24).verdict, "a black box has no mappings"
  end

  # A cache takes fewer new entries the fuller it is.
  def test_a_holder_that_keeps_ever_less_more_is_undecided
    slowing = [0, 100, 190, 270, 340, 400, 450].map { |one| one * 10_000 }
    assert_equal :undecided, growth(malloc: RISING, kept: slowing).verdict
    assert_equal :ruby, growth(malloc: RISING, kept: slowing, work: [0, 10, 19, 27, 34, 40, 45]).verdict, "less work is done as well"
    leaping = slowing.map { |bytes| bytes + (bytes > 4_200_000 ? MEGABYTE : 0) }
    assert_equal :undecided, growth(malloc: RISING, kept: leaping, objects: slowing.map { |one| one / 100 }).verdict, "the table of a cache grows by leaps"
    assert_equal :undecided, growth(malloc: RISING.map { |one| (one * 30_000_000) - (one * one / 3) }.map { |one| one / 10_000_000 }, blocks: BLOCKS).verdict
    assert_equal :ruby, growth(malloc: RISING, kept: [0, 100, 190, 290, 380, 480, 560].map { |one| one * 10_000 }).verdict
  end

  # The rest of the program is slowed down by a busy machine.
  def test_a_cache_that_fills_while_the_work_slows_down_too_is_undecided
    kept = [15_653, 33_204, 48_968, 63_386, 76_162, 87_789, 98_504]
    work = [210, 577, 911, 1211, 1482, 1715, 1927]
    assert_equal :undecided, growth(malloc: RISING, kept: kept.map { |one| one * 300 }, objects: kept, work: work).verdict
  end

  # The first count may be as old as the process, and a figure stays until the next count.
  def test_the_work_of_a_process_is_that_of_its_counts
    moments = [100, 100, 100, 5_000, 5_000, 7_000, 8_000, 9_000].each_with_index.map do |count, at|
      { "at" => 50.0 + at, "processes" => [{ "pid" => 1, "cpu_seconds" => 0.1 * at, "figures" => { "allocated_objects" => count } }] }
    end
    found = Culet::Diagnosis::Observation.new(moments: moments)
    assert_equal [2_000, 5_000, 6_000, 9_000], [0.0, 3.0, 4.0, 7.0].map { |seconds| found.work_until(1, seconds).round }
    assert_equal [1_000] * 3, found.load.map(&:round)
    moments.each { |moment| moment["processes"].first.delete("figures") }
    assert_in_delta 0.35, Culet::Diagnosis::Observation.new(moments: moments).work_until(1, 3.5)
  end

  # Its holder grows within one tick of processor time.
  def test_what_slows_down_in_a_process_that_does_no_work_is_undecided
    slowing = [0, 100, 190, 270, 340, 400, 450].map { |one| one * 10_000 }
    assert_equal :undecided, growth(malloc: RISING, kept: slowing, work: [0] * 25).verdict
  end

  def test_a_process_that_starts_during_the_watch_adds_to_the_load
    moments = Array.new(31) do |at|
      cpu = at > 20 ? { 1 => at, 2 => 3 * (at - 21) } : { 1 => at }
      cpu[3] = 0 if at == 30
      { "at" => at.to_f, "processes" => cpu.map { |pid, seconds| { "pid" => pid, "cpu_seconds" => seconds.to_f } } }
    end
    assert_equal [1.0, 1.0, 3.7], Culet::Diagnosis::Observation.new(moments: moments).load
  end

  def test_what_slows_down_or_comes_with_more_load_is_undecided
    filled = RISING.map { |one| Math.sqrt(one * 40_000_000).round }.then { |list| list.first(12) + list.drop(12).map { |one| list[11] + ((one - list[11]) / 10) } }
    assert_equal :undecided, growth(malloc: filled).verdict
    assert_equal :undecided, growth(malloc: RISING, load: [0.1, 0.2, 0.4]).verdict
  end

  def test_hours_before_the_watch_settle_what_it_shows
    filled = RISING.map { |one| [one, 12 * MEGABYTE].min }
    assert_equal :none, growth(malloc: filled, before: [50] * 24).verdict
    assert_equal :unclear, growth(malloc: filled, before: (50..73).to_a).verdict
    assert_equal :unclear, growth(malloc: FLAT, before: (50..73).to_a).verdict
    kept = [1, 2, 3, 4, 5, 6, 7].map { |one| one * 100_000 }
    assert_equal :undecided, growth(malloc: RISING, kept: kept, before: [50] * 24).verdict
    assert_equal :ruby, growth(malloc: RISING, kept: kept, before: (50..73).to_a).verdict
    assert_equal :ruby, growth(malloc: RISING, kept: kept, before: (50..73).to_a, load: [0.1, 0.2, 0.4]).verdict
  end

  # The looks that count are those of the other worker, whose native memory grows more than this one's.
  def test_what_was_looked_at_is_not_judged_by_its_trend
    alike = { malloc: RISING, kept: [100_000] * 7, native: [3, 3, 3, 3, 3, 3, 3], agent: true, pid: 2 }
    assert_equal :none, growth(**alike).verdict
    assert_equal :unclear, growth(**alike, looked: false).verdict
  end

  def test_what_does_not_rise_or_by_little_is_none
    assert_equal :none, growth(malloc: FLAT).verdict
    assert_equal :none, growth(malloc: RISING.map { |one| one / 100 }).verdict
    refute_predicate growth(malloc: FLAT), :leak?
  end

  private

  # @param malloc [Array<Integer>] bytes in use beyond 50 MB, one a second
  # @param kept [Array<Integer>, nil] what a holder keeps at each look
  # @param beside [Hash{String => Array<Integer>}] what other holders keep
  # @param native [Array<Numeric>, nil] megabytes of malloc that no object has, at each look
  # @param garbage [Array<Numeric>, nil] megabytes at each look
  # @param old [Array<Integer>] number of old objects, one a second
  # @param other [Array<Integer>] bytes that libraries have mapped, one a second
  # @param collections [Array<Array(Integer, Integer)>] number of all and of major ones, one a second
  # @param known [Boolean] whether malloc tells blocks in use
  # @param agent [Boolean] whether one has answered
  # @param before [Array<Integer>, nil] megabytes in use at each minute before the watch
  # @param work [Array<Numeric>] what was done until each second
  # @param looked [Boolean] whether looks at the process are known, too
  def growth(malloc:, blocks: FLAT, old: FLAT, other: FLAT, collections: COLLECTIONS, known: true, agent: false, before: nil, load: [0.1, 0.1, 0.1], work: [*0..24], looked: true, **looks)
    process = Culet::Diagnosis::ObservedProcess.new(1, "program")
    process.instance_variable_set(:@snapshot, Snapshot.new(known))
    process.looked = looked && looks.key?(:kept)
    malloc.each_with_index do |bytes, at|
      levels = Hash.new(0).merge("ruby_objects" => 10 * MEGABYTE, "malloc_used" => (50 * MEGABYTE) + bytes, "other" => other[at])
      process.readings << Culet::Diagnosis::ObservedProcess::Reading.new(at.to_f, levels, blocks[at], old[at], *collections[at])
    end
    found = observation(process, load, agent, **looks)
    found.define_singleton_method(:work_until) { |_, seconds| work[seconds.round] }
    found.history = history(process, before) if before
    Growth.new(found)
  end

  # @param megabytes [Array<Integer>] in use at each minute
  def history(process, megabytes)
    reading = Struct.new(:at, :levels)
    readings = megabytes.each_with_index.map { |one, at| reading.new(60 * at, { "ruby_objects" => 0, "malloc_used" => one * MEGABYTE }) }
    Culet::Diagnosis::History.new.tap { |history| history.add_box(process, Struct.new(:readings, :events).new(readings, [])) }
  end

  def observation(process, load, agent, kept: nil, **looks)
    moments = [{ "processes" => [{ "pid" => 1, "parent_pid" => 0, "figures" => agent ? {} : nil }] }]
    found = Culet::Diagnosis::Observation.new(seconds: 24.0, moments: moments, processes: [process], retention: kept && looks(kept, **looks), problems: [])
    found.define_singleton_method(:load) { load }
    found
  end

  # @param objects [Array<Integer>] of the holder, at each look
  # @param threads [Array<Integer>] their number at each look; together their stacks keep 600 KB more at each
  def looks(kept, beside: {}, native: nil, garbage: FLAT, pid: 1, threads: nil, objects: [111] * 7)
    found = kept.each_index.map do |at|
      keeping = { "LEAK" => kept, **beside }.each_with_index.map { |(name, bytes), number| holder(number, name, bytes[at]).merge("objects" => objects[at]) }
      keeping += stacks(keeping.size, threads[at], (at + 1) * 600_000) if threads
      known = native && (native[at] * MEGABYTE).round
      waiting = garbage[at] * MEGABYTE
      Culet::Retention::Growth::Look.new(at.to_f, analysis(holders: keeping, sets: [], native_bytes: known, unreachable_bytes: waiting, pid: pid))
    end
    Culet::Retention::Growth.new(found)
  end

  def stacks(id, count, bytes)
    each = bytes / count
    Array.new(count) do |number|
      holder(id + number, "stack of the thread", each, kind: "stack", file: nil, line: nil, classes: [["String", 100, each - 400], ["Thread", 1, 400]])
    end
  end
end
