# frozen_string_literal: true

require "agent/agent_helper"
require "profile/profile_helper"

# The agent's request for the profile.
class ProfileAgentTest < Minitest::Test
  include AgentHelper
  include ProfileHelper

  REFUSED = "error its agent belongs to another version of culet; use that version\n"
  # Allocates forever.
  BUSY = "$kept = nil; puts :up; $stdout.flush; loop { $kept = 'x' * 50_001; sleep 0.001 }"

  def test_start_status_write_and_stop
    with_agent(BUSY, env: sampled) do |pid|
      assert_equal "running=0 sample_bytes=524288 malloc=1\n", request(pid, "status")
      assert_match(/\Aerror the request failed with RuntimeError: the memory profile was not started\n\z/, raw(pid, line("write")))
      assert_equal "running=1 sample_bytes=4096 malloc=1\n", request(pid, "start", 4096)
      assert_equal "running=1 sample_bytes=524288 malloc=1\n", request(pid, "start")
      sleep 0.01 until (stream = Stream.new(request(pid, "write"))).sites.any?
      assert_equal "-e:1:block in <main>", stream.ruby(50_002)[1]
      assert_equal "running=0 sample_bytes=524288 malloc=1\n", request(pid, "stop")
      assert_equal samples(pid), samples(pid)
    end
  end

  # In Ruby 3.3 the innermost frame has no code then.
  def test_start_while_a_file_of_ruby_code_is_read
    Dir.mktmpdir do |folder|
      File.mkfifo(file = "#{folder}/code.rb")
      with_agent("#{SAY_UP}; load(#{file.dump})", env: sampled) do |pid|
        File.open(file, "w") do |code|
          code.puts("$kept = 1")
          code.flush
          assert_match(/\Arunning=1 /, request(pid, "start"))
        end
      end
    end
  end

  def test_without_an_allocator_that_samples
    with_agent("#{SAY_UP}; sleep") do |pid|
      assert_equal "running=1 sample_bytes=524288 malloc=0\n", request(pid, "start")
      assert_equal "E", Stream.new(request(pid, "write")).lines.last[0]
    end
  end

  def test_what_is_no_request_is_refused
    with_agent("#{SAY_UP}; sleep") do |pid|
      good = "culet-agent 1 profile action=start sample_bytes=4096 limit_ms=1000 wait_ms=1000"
      [good.sub("start", "begin"), good.sub("start", "status2"), good.sub("4096", "-1"), good.sub("4096", "+1"), good.sub("4096", "0x10"),
       good.sub("4096", "04096"), good.sub("4096", "18446744073709551616"), "#{good} ", "#{good}0x", good.sub(" limit", "  limit"),
       good.sub("1000", "999999999"), good.sub("wait_ms=1000", "wait_ms=-1")].each do |bad|
        assert_equal [REFUSED, bad], [raw(pid, "#{bad}\n"), bad]
      end
      assert_match(/running=0/, request(pid, "status"))
    end
  end

  def test_each_forked_worker_answers_for_itself
    script = <<~RUBY
      $stdout.sync = true
      up, ready = IO.pipe
      2.times { |index| fork { $kept = "x" * (50_001 + index); ready.write("."); sleep } }
      puts up.read(2)
      sleep
    RUBY
    with_agent(script, env: sampled) do |pid|
      workers = children(pid)
      assert_equal 2, workers.size
      workers.each { |worker| request(worker, "start") }
      streams = workers.map { |worker| Stream.new(request(worker, "write")) }
      assert_equal(workers, streams.map { |stream| stream.fields("P").first.to_i })
      assert_equal "running=0", request(pid, "status")[/\A\S+/]
    end
  end

  private

  def line(action, sample_bytes = 0) = "culet-agent 1 profile action=#{action} sample_bytes=#{sample_bytes} limit_ms=5000 wait_ms=5000\n"

  def request(pid, action, sample_bytes = 0)
    answer = raw(pid, line(action, sample_bytes))
    bytes = answer[/\Aok (\d+)\n/, 1] or flunk answer
    body = answer.split("\n", 2).last
    assert_equal bytes.to_i, body.bytesize
    body.force_encoding("UTF-8")
  end

  def samples(pid) = Stream.new(request(pid, "write")).sites.sum { |sums, _| sums["a"][0] }
end
