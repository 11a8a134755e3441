# frozen_string_literal: true

require "test_helper"
require "socket"
require_relative "attachments"

# A server under load that is looked into a hundred times.
class AttachmentsTest < Minitest::Test
  %w[glibc culet].each do |allocator|
    define_method("test_a_hundred_times_on_#{allocator}") do
      skip_unless_all
      attachments = Soak::Attachments.new(allocator: allocator, count: 100, seconds: 30)
      assert_operator attachments.call, :>, 10
      assert_equal [[], 100], [attachments.failures, attachments.readings]
    rescue Culet::Error => e
      raise unless e.message.match?(/no load generator|gems could not be installed/)

      skip e.message
    end
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
end
