# frozen_string_literal: true

require "test_helper"
require "json"
require "minitest/mock"
require "socket"
require "culet/benchmark/progress"
require "culet/system/executables"
require "culet/system/interruption"
require "culet/tools/compare"

class CompareServerTest < Minitest::Test
  # A server of a few lines, to be told its port and how to behave.
  SERVER = <<~'RUBY'
    require "socket"
    port, manner = ARGV
    server = TCPServer.new("127.0.0.1", port.to_i)
    answered = 0
    loop do
      Thread.new(server.accept) do |socket|
        while (line = socket.gets)
          next unless line == "\r\n"
          (warn("the server gives up"); exit!(1)) if manner == "dies" && (answered += 1) > 1
          status = manner == "refuses" || (manner == "fails" && (answered += 1) > 1) ? "500 No" : "200 OK"
          break if manner == "breaks" && (answered += 1) == 150
          sleep(0.01) if manner == "breaks"
          status = "301 Moved" if manner == "redirects"
          socket.write("HTTP/1.1 #{status}\r\nContent-Length: 2\r\n\r\nok")
        end
      rescue SystemCallError, IOError
        nil # the load has ended
      ensure
        socket.close
      end
    end
  RUBY

  def setup
    skip "wrk is not installed" unless Culet::Compare::Load.version
  end

  def test_a_server_of_the_users
    document, err, status = measure("works", allocators: "glibc,jemalloc", env: patient_load)
    assert status.success?, err
    assert_match(/\Awrk/, document["environment"]["load_generator"])
    run = document["results"].first["runs"].first
    assert_operator run["requests_per_second"], :>, 0
    assert_operator run["p50_seconds"], :>, 0
    assert_in_delta run["peak_rss_bytes"], run["loaded_rss_bytes"], run["peak_rss_bytes"] * 0.5
    assert_operator run["loaded_pss_bytes"], :<=, run["loaded_rss_bytes"]
    assert_in_delta run["loaded_rss_bytes"], run["end_rss_bytes"], run["loaded_rss_bytes"] * 0.5
    assert_operator run["end_pss_bytes"], :<=, run["end_rss_bytes"]
    assert_operator run["p99_seconds"], :>=, run["p50_seconds"]
    assert_operator run["cpu_per_request_seconds"], :>, 0
    assert_operator run["requests"] / run["requests_per_second"], :>=, 0.5
    metrics = document["comparisons"].map { |one| one["metric"] }
    assert_includes metrics, "requests_per_second"
    refute_includes metrics, "wall_seconds", "a server runs for as long as its load"
  end

  def test_failing_requests_are_no_result
    document, = measure("fails", env: patient_load)
    assert_empty document["results"]
    assert_match(/too many of \d+ requests failed: \d+ got an error status/, document["excluded"].first["reason"])
  end

  # Of some 400: a connection that a server closes between two requests.
  def test_one_request_may_fail
    document, = measure("breaks", env: patient_load)
    assert_empty document["excluded"]
    assert_operator document["results"].first["runs"].first["requests"], :<, 1_000
  end

  def test_a_server_that_only_answers_errors
    document, = measure("refuses")
    assert_match(/responds with status 500/, document["excluded"].first["reason"])
  end

  def test_a_server_that_redirects
    excluded = measure("redirects").first["excluded"].first
    assert_match(/responds with status 301, a redirect, which the load does not follow/, excluded["reason"])
    assert_match(/--url, or, for Rails' redirect to https, set config\.assume_ssl/, excluded["remedy"])
  end

  def test_a_server_that_dies_under_load
    document, = measure("dies", env: patient_load)
    assert_match(/exited with status 1 under load: the server gives up/, document["excluded"].first["reason"])
  end

  # One that finds out that it has ended when it waits for it, and not before.
  LATE = Class.new(Culet::Benchmark::Child) do
    def status = @waited && super

    def wait(seconds)
      @waited ||= seconds.nil?
      super && status
    end
  end

  def test_a_server_whose_death_is_noticed_after_the_load
    target = Culet::Compare::LoadTarget.local(Culet::Compare::LoadTarget.free_port)
    workload = Culet::Compare::Workload.command(server(target.to_s[/:(\d+)/, 1], "dies"), url: target)
    run = Culet::Compare::Run.new(workload: workload, choice: Culet::Allocators.parse("glibc"), interruption: Culet::Interruption.new,
                                  plan: Culet::Benchmark::Plan.new(workloads: [workload], choices: [], runs: 1, seed: 1, baseline: nil, duration_seconds: 1))
    path = ENV.fetch("PATH")
    ENV.update(patient_load(again: "[ $? = 0 ]")) # until nobody answers
    error = Culet::Benchmark::Child.stub(:new, ->(**options) { LATE.allocate.tap { |child| child.send(:initialize, **options) } }) do
      assert_raises(Culet::Benchmark::Exclusion) { run.call }
    end
    assert_equal "it exited with status 1 under load: the server gives up", error.message
  ensure
    ENV["PATH"] = path if path
  end

  def test_a_program_that_never_answers
    port = Culet::Compare::LoadTarget.free_port
    document, = compare(port, [RbConfig.ruby, "-e", "sleep 60"], "--timeout", "1")
    assert_match(/did not end within 1.0 seconds/, document["excluded"].first["reason"])
    document, = compare(port, [RbConfig.ruby, "-e", "exit"])
    assert_match(/ended before it answered at http/, document["excluded"].first["reason"])
  end

  def test_an_address_that_is_taken
    taken = TCPServer.new("127.0.0.1", 0)
    out, err, status = run_culet("compare", "--url", "http://127.0.0.1:#{taken.addr[1]}/", "--", "sleep", "60")
    assert_equal 1, status.exitstatus
    assert_empty out
    assert_match(/another server already listens at/, err)
  ensure
    taken&.close
  end

  # As a server of another protocol does.
  def test_an_answer_without_an_end_of_a_line
    { "HTTP/1.1 204 No" => 204, "220 mail" => nil, "\xff\xff" => nil }.each do |text, status|
      listener = TCPServer.new("127.0.0.1", 0)
      server = Thread.new { listener.accept.tap { |socket| socket.write(text) } }
      answer = Timeout.timeout(PATIENCE_SECONDS) { Culet::Compare::LoadTarget.local(listener.addr[1]).status }
      assert_equal [status], [answer], text
    ensure
      server&.value&.close
      listener&.close
    end
  end

  # Needs the network or the gems from an earlier use. Its bundle does not have culet, which trims in it all the same.
  def test_the_rack_workload
    out, = assert_culet_success("compare", "rack", "--allocators", "glibc,jemalloc:trim", "--runs", "1", "--duration", "1", "--scale", "0.1", "--json",
                                env: patient_load)
    document = JSON.parse(out)
    assert_empty document["excluded"]
    assert_equal %w[glibc jemalloc:trim], document["results"].map { |result| result["allocator"] }
    document["results"].each { |result| assert_operator result["summary"]["requests_per_second"]["median"], :>, 0 }
  end

  def test_without_a_load_generator
    directory = new_folder
    document, = measure("works", env: { "PATH" => directory })
    entry = document["excluded"].first
    assert_equal "wrk, the load generator, is not installed", entry["reason"]
    assert_match(/apt-get install wrk/, entry["remedy"])
  end

  private

  def measure(manner, **options)
    port = Culet::Compare::LoadTarget.free_port
    compare(port, server(port, manner), **options)
  end

  # @return [Array<String>] a command
  def server(port, manner) = [RbConfig.ruby, "--disable-gems", "-e", SERVER, port.to_s, manner]

  # A wrk that puts the load on anew where the server has not answered one request in all its time.
  #
  # @param again [String] in the language of the shell, whether it does so
  # @return [Hash] for the environment
  def patient_load(again: "echo \"$figures\" | grep -q '^culet 0 '")
    folder = new_folder
    File.write("#{folder}/wrk", <<~SH, perm: 0o755)
      #!/bin/sh
      while figures=$(#{Culet::Executables.find("wrk")} "$@"); #{again}; do :; done
      echo "$figures"
    SH
    { "PATH" => "#{folder}:#{ENV.fetch("PATH")}" }
  end

  def compare(port, command, *options, allocators: "glibc", env: {})
    out, err, status = run_culet("compare", "--allocators", allocators, "--runs", "1", "--duration", "1", "--connections", "4",
                                 "--json", "--url", "http://127.0.0.1:#{port}/", *options, "--", *command, env: env)
    [JSON.parse(out), err, status]
  end
end
