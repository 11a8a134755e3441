# frozen_string_literal: true

require "test_helper"
require "json"
require "socket"
require_relative "load"

# A server under load that is looked into, ten times and a hundred times.
class AttachmentsTest < Minitest::Test
  ATTACH = File.expand_path("attach", __dir__)

  def test_ten_times
    skip_unless_all
    assert_unharmed("--attachments", "10", "--seconds", "3")
  end

  def test_a_hundred_times
    skip_unless_all
    %w[glibc culet].each { |allocator| assert_unharmed("--attachments", "100", "--seconds", "30", "--allocator", allocator) }
  end

  def test_wrong_usage_is_told
    _, error, status = run_program(ATTACH, "--attachments", "0")
    assert_equal 2, status.exitstatus
    assert_match(/--attachments 0; at least 1/, error)
  end

  # A server that closes each connection instead of answering.
  def test_failed_requests_are_an_error
    skip_unless_all
    skip "there is no load generator" unless system("which", "wrk", out: File::NULL)

    server = TCPServer.new("127.0.0.1", 0)
    closer = Thread.new { loop { server.accept.close } }
    error = assert_raises(Soak::Load::RequestsFailed) { Soak::Load.new("http://127.0.0.1:#{server.addr[1]}/").run(1) { nil } }
    assert_match(/\Arequests failed: Socket errors: connect 0, read [1-9]/, error.message)
  ensure
    closer&.kill&.join
    server&.close
  end

  private

  def assert_unharmed(*words)
    text, error, status = run_program(ATTACH, *words, "--json", env: NEUTRAL, patience: 1_200)
    skip error[%r{^test/soak/attach: (.+)$}, 1] if status.exitstatus == 1 && error.match?(/no load generator|gems could not be installed/)
    assert status.success?, error
    result = JSON.parse(text)
    assert_equal [[], words[1].to_i], [result["failures"], result["longest_pause_seconds"].size]
    [result["without"], *result["with"]].each { |answered| assert_operator answered["requests"], :>, 10 }
  end
end
