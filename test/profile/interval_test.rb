# frozen_string_literal: true

require "test_helper"
require "culet/tools/profile"
require_relative "stream_maker"

# What was allocated between two recordings.
class ProfileIntervalTest < Minitest::Test
  FROM = Time.at(1_790_000_000)
  MEAN = 524_288

  def recording(allocated, live, **options)
    maker = StreamMaker.new(**options)
    allocated.each { |label, samples| maker.site([maker.ruby("/srv/shop/a.rb", 1, label)], { "a" => [samples, 400] }) }
    live.each { |label, samples| maker.site([maker.ruby("/srv/shop/a.rb", 1, label)], { "l" => [samples, 400] }) }
    Culet::Profile::Recording.new(maker.to_s, name: "shop")
  end

  def interval(before, found) = Culet::Profile::Interval.new(before, found, FROM, FROM + 60)

  def samples(data, view) = data.sites(view).to_h { |site| [site.frames.first.method, (site.bytes / MEAN).round] }

  def test_allocated_is_limited_to_the_interval
    one = interval([recording({ "old" => 30, "both" => 10 }, { "old" => 9 })],
                   [recording({ "old" => 30, "both" => 25, "new" => 4 }, { "old" => 7 })])
    assert_equal({ "both" => 15, "new" => 4 }, samples(one, :allocated))
    assert_equal({ "old" => 7 }, samples(one, :live))
  end

  def test_a_new_process_counts_from_its_start_and_a_forked_one_from_the_fork
    worker = recording({ "warm" => 5 }, {}, pid: 43, generation: 1)
    assert_equal({ "serve" => 6, "warm" => 5 }, samples(interval([], [recording({ "serve" => 6 }, {}), worker]), :allocated))
    later = recording({ "warm" => 5, "work" => 3 }, {}, pid: 43, generation: 1)
    assert_equal({ "work" => 3 }, samples(interval([worker], [later]), :allocated))
  end

  def test_pprof
    one = interval([], [recording({ "serve" => 6 }, {})])
    assert_equal one.pprof, one.pprof
    assert_includes Zlib.gunzip(one.pprof), "serve"
  end
end
