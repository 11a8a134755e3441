# frozen_string_literal: true

require "test_helper"
require "culet/profile"

# Which labels are in effect where.
class ProfileLabelsTest < Minitest::Test
  Profile = Culet::Profile

  def teardown
    assert_empty Profile.labels, "a test left labels behind"
  end

  def test_labels_are_in_effect_in_the_block_alone
    assert_equal([{ "endpoint" => "issues#index" }, 7], Profile.label(endpoint: "issues#index") { [Profile.labels, 7] })
    assert_empty Profile.labels
  end

  def test_inner_labels_are_added_replace_and_remove
    Profile.label(b: 1, a: :x) do
      assert_equal({ "a" => "x", "b" => "1" }, Profile.labels)
      Profile.label(a: "y", c: 2.5) { assert_equal({ "a" => "y", "b" => "1", "c" => "2.5" }, Profile.labels) }
      Profile.label(a: nil) { assert_equal({ "b" => "1" }, Profile.labels) }
      Profile.label { assert_equal({ "a" => "x", "b" => "1" }, Profile.labels) }
      assert_equal({ "a" => "x", "b" => "1" }, Profile.labels)
    end
  end

  def test_they_end_with_an_exception_a_throw_a_break_and_a_return
    assert_raises(IOError) { Profile.label(a: 1) { raise IOError } }
    assert_empty Profile.labels
    assert_equal(2, catch(:done) { Profile.label(a: 1) { throw :done, 2 } })
    assert_empty Profile.labels
    assert_equal(3, Profile.label(a: 1) { break 3 })
    assert_equal 4, leave_early
    assert_equal(5, Profile.label(a: 1) { Profile.label(b: 1) { next 5 } })
  end

  def test_a_killed_thread_leaves_no_label
    queue = Queue.new
    thread = Thread.new { Profile.label(a: 1) { queue.pop } }
    Thread.pass until thread.stop?
    thread.kill.join
    Thread.new { assert_empty Profile.labels }.join
  end

  def test_threads_have_labels_of_their_own
    Profile.label(a: 1) do
      assert_empty(Thread.new { Profile.labels }.value)
      assert_equal({ "b" => "2" }, Thread.new { Profile.label(b: 2) { Profile.labels } }.value)
      assert_equal({ "a" => "1" }, Profile.labels)
    end
  end

  def test_fibers_have_labels_of_their_own_and_inherit_them_while_a_profile_runs
    Profile.start
    Profile.label(request: 1) { nil } # the first label of a process enables the switches
    fibers = [1, 2].map { |number| Fiber.new { Profile.label(request: number) { 2.times { Fiber.yield Profile.labels } } } }
    4.times { |turn| assert_equal({ "request" => (turn.odd? ? 2 : 1).to_s }, fibers[turn % 2].resume) }
    assert_empty Profile.labels
    inner = Enumerator.new { |items| 2.times { items << Profile.labels } }
    Profile.label(job: "Mail") { assert_equal({ "job" => "Mail" }, inner.next) }
    assert_empty Profile.labels
    assert_equal({ "job" => "Mail" }, inner.next, "a fiber keeps the labels that it started with")
    fibers.each(&:resume)
  ensure
    Profile.stop
  end

  def test_values_are_cut_after_200_bytes_and_between_characters
    assert_equal({ "a" => "x" * 200 }, Profile.label(a: "x" * 5000) { Profile.labels })
    assert_equal({ "a" => "x#{"é" * 99}" }, Profile.label(a: "x#{"é" * 400}") { Profile.labels })
    assert_equal({ "a" => "x#{"😀" * 49}" }, Profile.label(a: "x#{"😀" * 400}") { Profile.labels })
  end

  def test_bytes_that_would_break_a_line_are_escaped
    values = { "\t\n\\" => '\x09\x0a\x5c', "\xff\xfeé".b => '\xff\xfeé', "é=b" => "é=b", "\xed\xa0\x80" => '\xed\xa0\x80',
               "ü".encode("UTF-16LE") => "ü", "" => "" }
    values.each { |value, text| assert_equal({ "a" => text }, Profile.label(a: value) { Profile.labels }) }
    assert_equal({ 'x\x3dy' => "1" }, Profile.label("x=y" => 1) { Profile.labels })
  end

  def test_too_many_pairs_are_left_out
    pairs = (10..99).to_h { |number| [:"name#{number}", "v" * 100] }
    labels = Profile.label(**pairs) { Profile.labels }
    assert_includes 1..16, labels.size
    assert(labels.all? { |name, value| value == pairs[name.to_sym] })
  end

  def test_beyond_10_000_sets_values_are_other
    out, err, status = run_program(RbConfig.ruby, "-I#{ROOT}/lib", "-rculet/profile", "-e", <<~RUBY)
      10_500.times { |number| Culet::Profile.label(user: number) { $last = Culet::Profile.labels } }
      puts $last.to_a.inspect, Culet::Profile.label(user: 17) { Culet::Profile.labels }.to_a.inspect
      300.times { |number| Culet::Profile.label("name\#{number}": 1) { $last = Culet::Profile.labels } }
      puts $last.to_a.inspect
    RUBY
    assert_predicate status, :success?, err
    assert_equal %([["user", "other"]]\n[["user", "17"]]\n[["other", "other"]]\n), out
  end

  # One after the other: Ruby itself may hang where a process forks while Ractors run.
  def test_ractors_and_forks
    out, err, status = run_program(RbConfig.ruby, "-W0", "-I#{ROOT}/lib", "-rculet/profile", "-e", <<~RUBY)
      ractors = Array.new(4) { |id| Ractor.new(id) { |n| 2000.times.all? { |i| Culet::Profile.label(a: i % 50, r: n) { Culet::Profile.labels == { "a" => (i % 50).to_s, "r" => n.to_s } } } } }
      ended = ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      10.times { exit!(1) unless Process.wait2(fork { exit!(Culet::Profile.label(child: 1) { Culet::Profile.labels["child"] } == "1") })[1].success? }
      p ended
    RUBY
    assert_predicate status, :success?, err
    assert_equal "[true, true, true, true]\n", out
  end

  def test_bad_arguments
    assert_raises(LocalJumpError) { Profile.label(a: 1) }
    assert_raises(ArgumentError) { Profile.label(1) { nil } }
    assert_raises(ZeroDivisionError) { Profile.label(a: bad_text) { flunk "ran" } }
  end

  private

  def leave_early
    Profile.label(a: 1) { return 4 }
  end

  def bad_text
    Object.new.tap { |object| object.define_singleton_method(:to_s) { 1 / 0 } }
  end
end
