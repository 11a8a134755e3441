# frozen_string_literal: true

require_relative "documents"
require "culet/model/retention/looks"
require "culet/system/interruption"
require "culet/tools/retain"

# What counts as growth.
class RetainGrowthTest < Minitest::Test
  include RetentionDocuments

  Growth = Culet::Retention::Growth

  def test_a_leak_grows
    growth = over([100_000, 200_000, 310_000, 390_000, 500_000])
    assert_equal ["growth", ["LEAK"]], [growth.verdict, growth.rows.map { |row| row.keeper.name }]
    assert_in_delta 800_000, growth.per_minute(growth.rows.first.growth_bytes), 1
  end

  def test_a_pause_of_the_load_hides_no_leak
    assert_equal "growth", over([100_000, 200_000, 200_000, 300_000, 400_000]).verdict
  end

  def test_a_cache_that_is_filled_is_no_leak
    assert_equal "none", over([100_000, 900_000, 900_000, 900_000, 900_000]).verdict
    assert_equal "none", over([100_000, 400_000, 700_000, 900_000, 900_000]).verdict, "it is full"
    assert_equal "none", over([100_000, 500_000, 700_000, 750_000, 770_000]).verdict, "it slows down"
  end

  # Few bytes, of objects that may have memory elsewhere.
  def test_the_holder_of_a_class_that_grows_in_number_is_found
    growth = shared_by([0, 10, 20, 30, 40], [0, 1, 2, 3, 4])
    assert_equal "OPEN", growth.keeper_of(growth.classes(least: 4).first).keeper.name
    growth = shared_by([0, 10, 20, 30, 40], [0, 10, 20, 30, 40])
    assert_nil growth.keeper_of(growth.classes(least: 4).first)
  end

  # A server leads to all of an application.
  def test_the_member_that_adds_most_is_found
    through = [["RACK", "Server"], ["(several references)", "Proc"], ["captured", "Prices"], ["@by_id", "Hash"], ["[4]", "Array"]]
    assert_equal "Prices @by_id", member(through, [1, 1, 1, 1, 0], [9, 9, 9, 9, 1])
    assert_equal "Proc captured", member(through, [5, 5, 4, 3, 0], [9, 9, 9, 4, 1])
    queue = [["JOBS", "Hash"], ["[:mail]", "Thread::Queue"], ["(mark)", "Array"]]
    assert_equal "Hash [:mail]", member(queue, [1, 1, 1], [9, 9, 9]), "C code has no names for its references"
    assert_nil member([["CACHE", "Hash"], ["[4]", "Array"]], [1, 1], [9, 1]), "what the holder refers to itself"
    assert_nil member([["A", "(internal env)"], ["captured", "Hash"]], [1, 1], [9, 9])
    assert_nil member(through, [9, 9, 9, 9, 9], [9, 9, 9, 9, 9]), "the heaviest part is another one"
  end

  def test_what_goes_up_and_down_is_no_leak
    assert_equal "none", over([100_000, 500_000, 150_000, 600_000, 300_000]).verdict
    assert_equal "none", over([900_000, 700_000, 500_000, 300_000, 100_000]).verdict
  end

  def test_a_sawtooth_that_rises_is_one
    assert_equal "growth", over([100_000, 400_000, 390_000, 700_000, 1_000_000]).verdict
  end

  # Ruby doubles the buffer of a String that grows. The number of objects tells it from a cache.
  def test_a_buffer_grows_by_leaps
    leaps = [1, 2, 4, 4, 8, 8, 8].map { |one| one * 100_000 }
    assert_equal "growth", over(leaps).verdict
    cache = leaps.each_with_index.map { |bytes, at| analysis(holders: [holder(0, "CACHE", bytes).merge("objects" => 100 + at)], sets: []) }
    assert_equal "none", Growth.new(series(cache)).verdict
    assert_equal "none", over([1, 2, 2, 2, 4, 4, 4].map { |one| one * 100_000 }).verdict, "two leaps"
    assert_equal "none", over([1, 2, 4, 8, 8, 8, 8].map { |one| one * 100_000 }).verdict, "it has ended"
    assert_equal "none", over([1, 2, 4, 3, 8, 8, 8].map { |one| one * 100_000 }).verdict, "it shrinks"
  end

  def test_little_is_no_leak
    assert_equal "none", over([100, 200, 300, 400, 500]).verdict
    # 0.05 % of a large heap.
    assert_equal "none", over([0, 100_000, 200_000, 300_000, 400_000], beside: 2_000_000_000).verdict
    assert_equal "growth", over([0, 400_000, 800_000, 1_200_000, 1_600_000], beside: 2_000_000_000).verdict
  end

  # On a busy machine a look may be late: what it finds more is of a longer time.
  def test_steps_count_by_their_time
    late = [0, 1, 2, 3, 6, 7, 8]
    filled = [0, 100, 200, 300, 600, 600, 600]
    assert Growth.steady?(late.map { |at| at * 100 }, 64, times: late)
    assert Growth.steady?([0, 100, 200, 300, 400, 500, 510], 64, times: [0, 1, 2, 3, 4, 5, 5.1])
    refute Growth.steady?([0, 100, 200, 300, 400, 500, 510], 64), "it slows down"
    refute Growth.steady?(filled, 64, times: late)
  end

  def test_the_process_that_grows_most_decides
    idle = over([900_000] * 5)
    leaking = over([100_000, 200_000, 310_000, 390_000, 500_000])
    assert_same leaking, Growth.largest([idle, leaking])
    native = Growth.new(series([1, 2, 3, 4, 5].map { |one| analysis(native_bytes: one * 1_000_000) }))
    assert_same native, Growth.largest([idle, native])
    assert_nil Growth.largest([over([100_000, 200_000])])
  end

  def test_a_look_that_fails_is_made_again_and_the_third_failure_in_a_row_ends_the_series
    answers = [analysis, nil, nil, analysis, nil, nil, *([analysis] * 5)]
    looks = looks { answers.shift || raise(Culet::Error, "no processor") }
    assert_equal [nil, Growth::LOOKS], [looks.problem, looks.growth.looks.size]
    calls = 0
    looks = looks { (calls += 1) < 3 ? analysis : raise(Culet::Error, "it has ended") }
    assert_equal ["it has ended", 2, 5], [looks.problem, looks.growth.looks.size, calls]
    assert_nil looks { raise Culet::Error, "no agent" }.growth
  end

  def test_a_process_of_which_a_look_takes_long_is_not_looked_at_again
    looks = looks(most_cpu_seconds: 5.0) { analysis(cpu_seconds: 5.5) }
    assert_equal ["a look took 6 s", 1, false], [looks.problem, looks.growth.looks.size, looks.late?]
  end

  # The series was broken off: the machine was too busy for the other looks.
  def test_looks_that_are_missing_are_late
    series = Culet::Retention::Looks.new(seconds: 0.0, interruption: Culet::Interruption.new) { analysis }
    assert_predicate series, :late?
    series.call
    refute_predicate series, :late?
  end

  # What grew until then may have ended.
  def test_looks_at_the_beginning_alone_tell_nothing
    at_once = Object.new.tap { |one| one.define_singleton_method(:wait) { |_| false } }
    series = Culet::Retention::Looks.new(seconds: 3_600.0, interruption: at_once) { analysis }.tap(&:call)
    assert_equal [true, false, true], [series.growth.known?, series.known?, series.late?]
  end

  def test_few_looks_are_no_verdict
    assert_equal "unknown", over([100_000, 200_000, 300_000, 400_000]).verdict
    assert_equal "unknown", over([100_000]).verdict
  end

  def test_noise_is_rarely_growth
    random = Random.new(3)
    wrong = Array.new(20_000) { Growth.steady?(Array.new(Growth::LOOKS) { 1_000_000 + random.rand(500_000) }, 65_536) }.count(true)
    assert_operator wrong, :<, 20_000 / 500
  end

  def test_closures_of_one_line_are_one_row
    looks = [1, 3, 5, 7, 9].map do |count|
      analysis(holders: Array.new(count) { |at| holder(at, "block in Hub#add #{at}", 50_000, kind: "closure", file: "hub.rb", line: 7) }, sets: [])
    end
    growth = Growth.new(series(looks))
    assert_equal [[9, 400_000]], growth.rows.map { |row| [row.count, row.growth_bytes] }
  end

  def test_names_that_differ_by_a_number_are_one_row
    looks = [1, 3, 5, 7, 9].map { |count| analysis(holders: Array.new(count) { |at| holder(at, "Kept::C#{at}", 50_000) }, sets: []) }
    assert_equal [9], Growth.new(series(looks)).rows.map(&:count)
  end

  # A thread that runs through the list, by its stack or by a variable, is no second leak, and takes nothing from it.
  def test_a_set_of_a_constant_and_a_running_thread_is_the_constants
    %w[stack thread_local fiber_local].each do |kind|
      looks = [1, 2, 3, 4, 5].map do |step|
        holders = [holder(0, "LIST", step * 50_000), holder(1, "main thread", 100, kind: kind, file: nil)]
        step.even? ? analysis(holders: holders, sets: [set([0, 1], 10)]) : analysis(holders: [holder(0, "LIST", 100), holders[1]], sets: [set([0, 1], step * 50_000)])
      end
      assert_equal [["LIST", 1]], Growth.new(series(looks)).rows.map { |row| [row.keeper.name, row.count] }, kind
    end
  end

  def test_two_variables_of_threads_grow_together
    looks = [1, 2, 3, 4, 5].map do |step|
      holders = [holder(1, "main", 100, kind: "stack"), holder(2, "CACHE", 0, kind: "thread_local"), holder(3, "KEPT", 0, kind: "fiber_local")]
      analysis(holders: holders, sets: [set([1, 2, 3], step * 100_000)])
    end
    assert_equal [400_000], Growth.new(series(looks)).rows.map(&:growth_bytes)
  end

  def test_two_registries_grow_together
    looks = [1, 2, 3, 4, 5].map { |step| analysis(sets: [set([1, 2], step * 100_000)]) }
    assert_equal [["A::LIST and B::INDEX keep", "A::LIST and B::INDEX", nil]],
                 Growth.new(series(looks)).rows.map { |row| [row.keeps, row.keeper.name, row.keeper.place] }
  end

  def test_holders_beyond_the_listed_ones_may_grow_too
    looks = [1, 2, 3, 4, 5].map { |step| analysis(others: [step * 100, 1_000, step * 100_000]) }
    assert_equal ["other holders"], Growth.new(series(looks)).rows.map { |row| row.keeper.title }
  end

  # It may have been there, and too small to be listed.
  def test_a_new_row_is_no_growth_from_zero
    looks = [1, 2, 3, 4, 5].map do |step|
      small = step < 3 ? [] : [holder(1, "LATE", 300_000 + step)]
      analysis(holders: [holder(0, "OLD", 300_000), *small], sets: [], others: [100, 1_000, 10_000])
    end
    assert_equal "none", Growth.new(series(looks)).verdict
  end

  def test_classes_that_grow
    looks = [100, 200, 300, 400, 500].map { |count| analysis(classes: [["OrdersController", count, count * 400], ["String", 900, 1_000]]) }
    growth = Growth.new(series(looks))
    assert_equal [["OrdersController", 400]], growth.classes.map { |row| [row.name, row.growth_objects] }
    text = Culet::Retain::GrowthTable.new(growth, classes: true).to_s
    assert_match(/^OrdersController +500 +\+800 +\+320 kB$/, text)
  end

  def test_the_table_and_the_document
    growth = over([100_000, 200_000, 300_000, 400_000, 500_000])
    text = Culet::Retain::GrowthTable.new(growth).to_s
    assert_includes text, "1. +800 kB per minute, now 500 kB: constant LEAK (/app/lib/shop.rb:12)\n   per minute: 0 String +600 kB; 0 Page +200 kB\n   Shop::CACHE -> Hash"
    found = Culet::Retain::Document.new(growth.analysis, growth: growth).to_h["growth"]
    assert_equal ["growth", 800_000, [100_000, 200_000, 300_000, 400_000, 500_000]], [found["verdict"], *found["holders"].first.values_at("bytes_per_minute", "each_bytes")]
    assert_equal 5, found["looks"].size
  end

  def test_none_says_what_would_not_have_shown
    text = Culet::Retain::GrowthTable.new(over([100_000] * 5)).to_s.tr("\n", " ")
    assert_includes text, "process 4242: no growth shown"
    assert_includes text, "A leak of less than 131 kB per minute does not show in 30.0 s"
  end

  private

  # @return [Culet::Retention::Looks] at once, one after the other
  def looks(**options, &look)
    Culet::Retention::Looks.new(seconds: 0.0, interruption: Culet::Interruption.new, **options, &look).tap(&:call)
  end

  # @param figures [Array<Integer>] bytes of the one holder that changes
  def over(figures, beside: 0)
    holders = ->(bytes) { [holder(0, "LEAK", bytes), *([holder(1, "STILL", beside)] if beside.positive?)] }
    Growth.new(series(figures.map { |bytes| analysis(holders: holders.call(bytes), sets: []) }))
  end

  # @param names [Array<Array(String, String)>] edge and class of each step of the holder's path
  # @param counts [Array<Array<Integer>>] what the steps' objects keep at the first look and at the others, in 100 kB
  def member(names, *counts)
    looks = [counts.first, *[counts.last] * 4].each_with_index.map do |bytes, at|
      path = names.zip(bytes).each_with_index.map do |((edge, name), count), step|
        { "edge" => edge, "class" => name, "address" => "0x7f0#{step}", "bytes" => count * 100_000 }
      end
      analysis(holders: [holder(0, "RACK", 100_000 + (200_000 * at), path: path)], sets: [])
    end
    growth = Growth.new(series(looks))
    growth.member(growth.rows.first)
  end

  # @param counts [Array<Array<Integer>>] objects of a class that the first holder keeps at each look, the second, ...
  def shared_by(*counts)
    Growth.new(series(counts.transpose.map do |each|
      holders = each.each_with_index.map { |count, id| holder(id, %w[OPEN OTHER].fetch(id), 72 * count, classes: [["Zlib::Deflate", count, 72 * count]]) }
      analysis(holders: holders, sets: [], classes: [["Zlib::Deflate", each.sum, 72 * each.sum]])
    end))
  end

  def series(analyses) = analyses.each_with_index.map { |one, at| Growth::Look.new(100.0 + (7.5 * at), one) }
end
