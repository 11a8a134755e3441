# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "tempfile"
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

  def test_the_text
    response = get(@port, "/metrics?x=1")
    assert_equal ["200", "text/plain; version=0.0.4; charset=utf-8"], [response.code, response["content-type"]]
    assert_equal 1, pids(parse(response.body)).size
  end

  def test_other_requests
    assert_equal "404", get(@port, "/").code
    assert_match(%r{\AHTTP/1.1 405 .*^allow: GET, HEAD\r$}m, exchange("POST /metrics HTTP/1.1\r\n\r\n"))
    assert_match(%r{\AHTTP/1.1 400 }, exchange("hello\r\n\r\n"))
    head = exchange("HEAD /metrics HTTP/1.0\r\n\r\n")
    assert_match(/^content-length: \d{4,}\r$/, head)
    assert head.end_with?("\r\n\r\n")
  end

  def test_clients_that_send_nothing_or_too_much_are_dropped
    serve(seconds: 0.1) do |port|
      silent = TCPSocket.new("127.0.0.1", port)
      assert_nil silent.read(1)
      silent.close
    end
    assert_equal "", exchange("GET /metrics HTTP/1.1\r\nx: #{"y" * 100_000}\r\n\r\n")
    assert_equal "", exchange("\xff\x00\r\n\r\n".b).b[/\A(?!HTTP)/].to_s
    assert_equal "200", get(@port).code
  end

  def test_idle_connections_delay_no_scrape
    serve(seconds: 600) do |port|
      idle = Array.new(200) { TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("GET /metrics HTTP/1.1\r\n") } }
      assert_equal "200", get(port).code
      assert_equal :wait_readable, idle.last.read_nonblock(1, exception: false), "the server waited for it"
      assert_nil idle.first.read(1) # the oldest gives way
      idle.last.write("\r\n")
      assert_match(%r{\AHTTP/1.1 200 }, idle.last.read)
    ensure
      idle.each(&:close)
    end
  end

  # One that does not read keeps its own answer waiting alone.
  def test_a_client_that_does_not_read_delays_no_other
    Culet::Metrics.stub(:text, "x" * 6_000_000) do
      serve(seconds: 600) do |port|
        slow = TCPSocket.new("127.0.0.1", port)
        slow.write("GET /metrics HTTP/1.1\r\n\r\n")
        assert slow.wait_readable(PATIENCE_SECONDS)
        assert_equal 6_000_000, get(port).body.size
        assert_equal 6_000_000, slow.read[/\r\n\r\n(.*)/m, 1].size
      ensure
        slow.close
      end
    end
  end

  # A page of elsewhere whose name leads here (DNS rebinding).
  def test_names_of_elsewhere_are_refused
    names = { "127.0.0.1:9394" => 200, "[::1]:9394" => 200, "10.1.2.3" => 200, "localhost:1" => 200, "web" => 200, "evil.example" => 403,
              "127.0.0.1.evil.example:9394" => 403, "localhost.evil.example" => 403, "shop.example:9394" => 200, "SHOP.example" => 200 }
    serve(hosts: ["shop.example"]) do |port|
      found = names.to_h { |name, _| [name, get(port, "/metrics", "host" => name).code.to_i] }
      assert_equal names, found
    end
  end

  def test_names_of_the_environment
    before = ENV.fetch("CULET_METRICS_HOSTS", nil)
    ENV["CULET_METRICS_HOSTS"] = "shop.example, \xFF"
    port = free_port
    assert Culet::Metrics.start(port)
    assert_equal %w[200 403], %w[shop.example evil.example].map { |name| get(port, "/metrics", "host" => name).code }
  ensure
    Culet::Metrics.stop
    ENV["CULET_METRICS_HOSTS"] = before
  end

  def test_a_token
    serve(token: "se+cret") do |port|
      codes = [nil, "Bearer se+cre", "Basic se+cret", "Bearer", "bearer  se+cret", "Bearer se+cret"].map do |value|
        get(port, "/metrics", { "host" => "any.example", "authorization" => value }.compact).code
      end
      assert_equal %w[401 401 401 401 200 200], codes
      response = get(port)
      assert_equal "Bearer", response["www-authenticate"]
      refute_includes response.body, "culet_"
    end
    { [free_port, " "] => "the token (CULET_METRICS_TOKEN) is empty", [free_port, "\xFF"] => "the token (CULET_METRICS_TOKEN) is empty",
      ["\xFF", nil] => '"\xFF" is not a port, HOST:PORT or unix:/PATH' }.each do |(address, token), sentence|
      _, err = capture_io { refute Culet::Metrics.start(address, token: token) }
      assert_equal "culet: metrics are not served: #{sentence}\n", err
    end
  ensure
    Culet::Metrics.stop
  end

  def test_a_unix_socket
    folder = new_folder
    path = "#{folder}/metrics"
    UNIXServer.new(path).close # of a process that has ended
    server = Culet::Metrics::Server.open("unix:#{path}")
    UNIXSocket.open(path) do |socket|
      socket.write("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n")
      assert_match(%r{\AHTTP/1.1 200 }, socket.read)
    end
    assert_raises(Errno::EADDRINUSE) { Culet::Metrics::Server.open("unix:#{path}") }
    server.stop
    refute_path_exists path
    File.write(path, "kept")
    assert_raises(Errno::EADDRINUSE) { Culet::Metrics::Server.open("unix:#{path}") }
    assert_equal "kept", File.read(path)
  end

  LACKING = <<~'RUBY'
    Process.setrlimit(:NOFILE, 64)
    Culet::Metrics.start(Integer(ENV.fetch("PORT")))
    files = []
    worker = lambda do
      fork do
        files.each(&:close)
        $stdin.close
        sleep
      end
    end
    puts [Process.pid, worker.call, worker.call].join(" ")
    $stdout.flush
    while (line = $stdin.gets)
      files.each(&:close).clear
      if (left = line[/leave (\d+)/, 1])
        begin
          loop { files << File.open(File::NULL) }
        rescue Errno::EMFILE
          files.pop(left.to_i).each(&:close)
        end
      end
      puts line.start_with?("fork") ? worker.call : "ready"
      $stdout.flush
    end
  RUBY

  # Of the process that collects: with 0 to 6 left, another part fails each time.
  def test_a_lack_of_descriptors_passes
    port = free_port
    errors = Tempfile.new("errors")
    IO.popen([{ "PORT" => port.to_s, **NEUTRAL }, RbConfig.ruby, *FLAGS, "-rculet/metrics", "-e", LACKING], "r+", err: errors, pgroup: true) do |program|
      first = program.gets.split
      scrape_until(port) { |found| first - found == [] }
      waiting = lack(program, port, first)
      program.puts("fork leave 0")
      all = [*first, program.gets.chomp]
      program.puts("free")
      assert_equal "ready\n", program.gets
      scrape_until(port, -> { File.read(errors.path) }) { |found| all - found == [] }
      assert_match(%r{\AHTTP/1.1 (200|503) }, waiting.read)
    ensure
      Process.kill(:KILL, -program.pid)
    end
    assert_match(/\Aculet: metrics are not \w+ at the moment: Errno::EMFILE: .*\n/, File.read(errors.path))
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
        sleep 0.01 until Dir["/proc/\#{Process.ppid}/task/*/stat"].all? { |file| File.read(file).match?(/\\) T /) }
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

  # No answer without one of these processes may have status 200.
  #
  # @return [TCPSocket] of a request that could not be accepted
  def lack(program, port, pids)
    waiting = nil
    (0..6).each do |left|
      program.puts("leave #{left}")
      program.gets
      next waiting = TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("GET /metrics HTTP/1.0\r\n\r\n") } if left.zero?

      response = get(port)
      assert_includes %w[200 503], response.code
      assert_empty pids - pids(parse(response.body)), "with #{left} left" if response.code == "200"
    end
    waiting
  end

  # @yieldparam pids [Array<String>]
  # @param what [#call] told where the block is true of no answer
  def scrape_until(port, what = -> { "such an answer" })
    assert_settles(what) do
      response = get(port)
      response.code == "200" && yield(pids(parse(response.body)))
    end
  end

  def serve(**options)
    port = free_port
    server = Culet::Metrics::Server.open(port, **options)
    yield port
  ensure
    server&.stop
  end

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
