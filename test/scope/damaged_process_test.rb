# frozen_string_literal: true

require_relative "target_helper"

# An ordinary program with a heap that it has written over: it is told of as far as it can be, and goes on meanwhile. (What
# attackers do to the reader is in reader/test/hostile.)
class ScopeDamagedProcessTest < Minitest::Test
  include TargetHelper

  MEGABYTE = 1 << 20

  def test_every_verb_tells_what_it_can
    with_overflow do |pid, output|
      %w[report map snapshot].each do |verb|
        in_directory do |directory|
          words = verb == "snapshot" ? ["--out", File.join(directory, "one")] : ["--json"]
          _, err, status = run_culet(verb, pid.to_s, *words)
          assert_predicate status, :success?, "#{verb}: #{err}"
          refute_match(/\.rb:\d+/, err)
          assert_goes_on(output)
        end
      end
    end
  end

  def test_the_arena_is_said_to_be_broken_and_the_reader_stays_small
    with_overflow do |pid, output|
      snapshot = read(pid)
      assert_match(/The walk of the main arena \(main\) was stopped/, snapshot.problems.join(" "))
      assert_operator snapshot.malloc.used_bytes, :>, 9 * MEGABYTE
      assert_whole(snapshot)
      assert_operator snapshot.reading["peak_rss_bytes"], :<, 32 * MEGABYTE
      assert_goes_on(output)
    end
  end

  private

  def with_overflow
    with_target("overflow") do |program|
      with_talker(program, last: "3") { |pid, _, output| yield pid, output }
    end
  end

  # Ten numbers more than were printed up to now.
  def assert_goes_on(output)
    output.readpartial(65_536) while output.wait_readable(0)
    10.times { assert_match(/\d/, output.gets) }
  end
end
