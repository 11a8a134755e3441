# frozen_string_literal: true

require "test_helper"
require "culet/metrics"
require_relative "metrics_helper"

# /metrics over HTTP, on a port of its own and in an application.
class MetricsServerTest < Minitest::Test
  include MetricsHelper

  def setup
    @port = free_port
    @server = Culet::Metrics::Server.open(@port)
  end

  def teardown
    @server.stop
  end

  def test_the_format_is_negotiated
    response = get(@port)
    assert_equal ["200", "text/plain; version=0.0.4; charset=utf-8"], [response.code, response["content-type"]]
    assert_equal 1, pids(parse(response.body)).size
    response = get(@port, "/metrics?x=1", "accept" => "application/openmetrics-text;version=1.0.0")
    assert_equal ["200", "application/openmetrics-text; version=1.0.0; charset=utf-8"], [response.code, response["content-type"]]
    assert response.body.end_with?("# EOF\n")
  end

  def test_other_requests
    assert_equal "404", get(@port, "/").code
    assert_match(%r{\AHTTP/1.1 405 .*^allow: GET, HEAD\r$}m, exchange("POST /metrics HTTP/1.1\r\n\r\n"))
    assert_match(%r{\AHTTP/1.1 400 }, exchange("hello\r\n\r\n"))
    head = exchange("HEAD /metrics HTTP/1.0\r\n\r\n")
    assert_match(/^content-length: \d{4,}\r$/, head)
    assert head.end_with?("\r\n\r\n")
  end

  # Slow and hostile clients hold up others for two seconds at most.
  def test_clients_that_send_nothing_or_too_much_are_dropped
    silent = TCPSocket.new("127.0.0.1", @port)
    assert_equal "", exchange("GET /metrics HTTP/1.1\r\nx: #{"y" * 100_000}\r\n\r\n")
    assert_equal "", exchange("\xff\x00\r\n\r\n".b).b[/\A(?!HTTP)/].to_s
    assert_equal "200", get(@port).code
    assert_nil silent.read(1)
  ensure
    silent&.close
  end

  def test_it_listens_on_this_host_alone_by_default
    assert_equal "127.0.0.1", @server.instance_variable_get(:@socket).local_address.ip_address
    ["[::1]:#{free_port}", "localhost:#{free_port}"].each { |address| Culet::Metrics::Server.open(address).stop }
    [0, "x", "1:2:3", "127.0.0.1:", ":80", "70000", "[::1]"].each { |address| assert_raises(ArgumentError, address) { Culet::Metrics::Server.open(address) } }
  end

  def test_a_forked_child_does_not_keep_the_port
    port = free_port
    out = run_ruby(<<~RUBY)
      Culet::Metrics.start(#{port})
      reader, writer = IO.pipe
      child = fork { writer.puts; reader.close; $stdout.close; sleep }
      reader.gets # its hook has run
      Culet::Metrics.stop
      TCPServer.new("127.0.0.1", #{port}).close
      Process.kill(:KILL, child)
      puts :free
    RUBY
    assert_equal "free\n", out
  end

  def test_the_middleware
    app = Culet::Metrics::Rack.new(->(env) { [404, {}, [env["PATH_INFO"]]] })
    status, headers, body = app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/metrics")
    assert_equal [200, "text/plain; version=0.0.4; charset=utf-8", body.sum(&:bytesize).to_s], [status, *headers.values_at("content-type", "content-length")]
    assert_operator parse(body.join).size, :>, 20
    _, headers, = app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/metrics", "HTTP_ACCEPT" => "application/openmetrics-text")
    assert_match(/openmetrics/, headers["content-type"])
    assert_equal [200, []], app.call("REQUEST_METHOD" => "HEAD", "PATH_INFO" => "/metrics").values_at(0, 2)
    assert_equal [404, {}, ["/"]], app.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/")
    assert_equal 404, app.call("REQUEST_METHOD" => "POST", "PATH_INFO" => "/metrics").first
    elsewhere = Culet::Metrics::Rack.new(->(_) { [404, {}, []] }, path: "/internal/metrics")
    assert_equal [404, 200], %w[/metrics /internal/metrics].map { |path| elsewhere.call("REQUEST_METHOD" => "GET", "PATH_INFO" => path).first }
  end

  # A parent that is stopped cannot answer its child.
  def test_the_middleware_says_when_the_parent_does_not_answer
    out = run_ruby(<<~RUBY)
      Culet::Metrics.start
      reader, writer = IO.pipe
      child = fork do
        Process.kill(:STOP, Process.ppid)
        status, _, body = Culet::Metrics::Rack.new(nil).call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/metrics")
        writer.write(status, " ", *body)
        Process.kill(:CONT, Process.ppid)
      end
      Process.wait(child)
      writer.close
      print reader.read
    RUBY
    assert_equal "503 the process that collects the metrics does not answer\n", out
  end

  private

  def exchange(request)
    socket = TCPSocket.new("127.0.0.1", @port)
    socket.write(request)
    socket.close_write
    socket.read
  rescue Errno::ECONNRESET, Errno::EPIPE
    ""
  ensure
    socket&.close
  end
end
