# frozen_string_literal: true

require_relative "live_helper"

# Who gets what from the server.
class LiveServerTest < Minitest::Test
  include LiveHelper

  def test_the_page_is_whole_and_asks_for_nothing_else
    with_server(history(frames(moments(2)))) do |server, notes|
      answer = get(server.url)
      assert_equal "200", answer.code
      policy = answer["content-security-policy"]
      script, style = [%r{<script>(.*)</script>}m, %r{<style>(.*)</style>}m].map { |tag| answer.body.force_encoding("UTF-8")[tag, 1] }
      assert_includes policy, "default-src 'none'; script-src 'sha256-#{Digest::SHA256.base64digest(script)}'; style-src 'sha256-#{Digest::SHA256.base64digest(style)}'; connect-src 'self'"
      refute_includes policy, "unsafe"
      expected = { "cache-control" => "no-store", "x-content-type-options" => "nosniff", "referrer-policy" => "no-referrer", "x-frame-options" => "DENY" }
      assert_equal expected, expected.to_h { |name, _| [name, answer[name]] }
      refute_match(%r{\son\w+=["']|https?://}, answer.body.sub(script, ""))
      assert_includes script, "leeoniya/uPlot"
      assert_empty notes.string
    end
  end

  def test_an_address_without_the_token_leads_nowhere
    with_server(history(frames(moments(2)))) do |server, _|
      base = "http://127.0.0.1:#{server.port}"
      token = URI(server.url).path.delete("/")
      assert_operator token.size, :>=, 32
      ["/", "/x/", "/moments", "/#{token}", "/#{token[0..-2]}/", "/#{token}x/moments", "/#{token}/../x/", "/#{token}/other"].each do |path|
        answer = get("#{base}#{path}")
        assert_equal "404", answer.code, path
        refute_includes answer.body, "script"
      end
      assert_equal "200", get("#{base}/#{token}/").code
    end
  end

  # A page of elsewhere whose name leads to 127.0.0.1, and one that asks from elsewhere.
  def test_other_hosts_and_origins_are_refused
    with_server(history(frames(moments(2)))) do |server, _|
      port = server.port
      refused = [{ "Host" => "evil.example:#{port}" }, { "Host" => "127.0.0.1" }, { "Host" => "127.0.0.1:#{port}.evil.example" }, { "Origin" => "http://evil.example" },
                 { "Origin" => "null" }, { "Origin" => "https://127.0.0.1:#{port}" }, { "Sec-Fetch-Site" => "cross-site" }, { "Sec-Fetch-Site" => "same-site" }]
      refused.each { |headers| assert_equal "404", get(server.url, headers).code, headers }
      taken = [{ "Host" => "localhost:#{port}" }, { "Host" => "[::1]:#{port}" }, { "Origin" => "http://127.0.0.1:#{port}" }, { "Sec-Fetch-Site" => "none" }]
      taken.each { |headers| assert_equal "200", get(server.url, headers).code, headers }
      assert_equal "405", get(server.url, method: Net::HTTP::Delete).code
      assert_equal "405", get(server.url, { "Content-Length" => "0", "Content-Type" => "text/plain" }, method: Net::HTTP::Post).code
      assert_nil get(server.url, method: Net::HTTP::Head).body
    end
  end

  def test_only_this_machine_can_connect
    with_server(history([])) do |server, _|
      listening = File.readlines("/proc/net/tcp").map(&:split).select { |fields| fields[3] == "0A" && fields[1].end_with?(format(":%04X", server.port)) }
      assert_equal(["0100007F"], listening.map { |fields| fields[1][/\A\h+/] })
    end
  end

  def test_a_taken_port_is_a_sentence
    with_server(history([])) do |server, _|
      error = assert_raises(Culet::Error) { with_server(history([]), port: server.port) { flunk } }
      assert_equal "port #{server.port} is in use; give another one, or leave --port out", error.message
    end
  end

  def test_a_page_that_connects_again_gets_what_it_lacks
    all = moments(40)
    history = history(frames(all.first(30)))
    with_server(history) do |server, _|
      open_stream(server) do |socket, head|
        assert_match(%r{\AHTTP/1\.1 200 .*text/event-stream}m, head)
        assert_equal states(frames(all.first(30))), states(read_events(socket, 30))
      end
      frames(all).drop(30).each { |frame| history.add(frame) }
      open_stream(server, last: 30) do |socket, _|
        found = read_events(socket, 10)
        assert_equal frames(all).drop(30).map(&:text), found
        history.finish
        assert_equal ["{}"], read_events(socket, 1)
      end
      assert_settles("nobody is connected") { server.pages.zero? }
    end
  end

  # Much is waiting for a browser that takes nothing: it is given up, and others are served meanwhile.
  def test_a_browser_that_does_not_read_is_dropped
    all = frames(moments(900, workers: 12))
    history = history(all.shift(600), most_frames: 5000)
    with_server(history, stall_seconds: 1.0) do |server, _|
      open_stream(server, buffer_bytes: 4096) do
        assert_equal 600, read_again_and_again(server, 600)
        # A browser that has gone is noticed by the next writes.
        assert_settles("both are dropped") { all.shift&.then { |frame| history.add(frame) } && server.pages.zero? }
      end
    end
  end

  # Another user's: 64 that send a byte at a time, and 1,000 that send nothing. It answers a line with what is still open.
  CROWD = <<~'RUBY'
    require "socket"
    port, slow, idle = ARGV.map(&:to_i)
    slow = Array.new(slow) { TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("GET / HTTP/1.1\r\n") } }
    idle = Array.new(idle) { TCPSocket.new("127.0.0.1", port) }
    Thread.new do
      loop do
        slow.each { |socket| socket.write_nonblock("x: y\r\n", exception: false) rescue nil }
        sleep(0.1)
      end
    end
    begin
      puts [slow, idle].map { |sockets| sockets.count { |socket| !socket.wait_readable(0) } }.join(" ")
      $stdout.flush
    end while $stdin.gets
  RUBY

  def test_connections_of_other_users_block_no_page
    { "64" => "0", "0" => "1000" }.each do |slow, idle|
      with_server(history(frames(moments(2)))) do |server, _|
        open_stream(server) do |stream, _|
          crowd(server, slow, idle) do |program|
            assert_equal "200", get(server.url).code
            program.puts
            assert_operator program.gets.split.sum(&:to_i), :>, 0, "the server waited for them"
            assert_equal 2, read_events(stream, 2).size
          end
        end
      end
    end
  end

  def test_there_is_a_limit_of_pages
    with_server(history(frames(moments(1)))) do |server, _|
      streams = Array.new(Server::MOST_PAGES) { Fiber.new { open_stream(server) { Fiber.yield } } }
      streams.each(&:resume)
      assert_settles("all are connected") { server.pages == Server::MOST_PAGES }
      answer = get("#{server.url}moments")
      assert_equal ["503", "Too many pages are open; close one.\n"], [answer.code, answer.body]
      streams.each(&:resume)
    end
  end

  def test_a_defect_is_reported_on_the_terminal
    page = Page.new(subject: "puma", every_seconds: 1.0)
    page.define_singleton_method(:to_s) { raise ArgumentError, "a defect" }
    with_server(history([]), page: page) do |server, notes|
      assert_equal "500", get(server.url).code
      assert_equal "culet: a request failed: ArgumentError: a defect\n", notes.string
    end
  end

  # A server that has no descriptor left, and how often in a second it tries to accept the connection that waits.
  EXHAUSTED = <<~RUBY
    require_relative "test/live/live_helper"
    LiveHelper.with_server(LiveHelper.history([])) do |server, _|
      LiveHelper.get(server.url) # it has begun
      Process.setrlimit(:NOFILE, 256)
      begin
        held = []
        loop { held << File.open("/dev/null") }
      rescue Errno::EMFILE
        tries = 0
        trace = TracePoint.new(:call) { |point| tries += 1 if point.method_id == :accept_nonblock }
        trace.enable
        puts server.url
        $stdout.flush
        sleep 0.05 until tries.positive?
        began = Culet::Clock.now
        sleep 1
        trace.disable
        held.each(&:close)
        puts (tries / (Culet::Clock.now - began)).ceil
        $stdout.flush
        $stdin.gets
      end
    end
    exit!
  RUBY

  def test_without_descriptors_the_server_waits
    IO.popen({ "TMPDIR" => new_folder }, [RbConfig.ruby, "-Ilib", "-Itest", "-e", EXHAUSTED], "r+", chdir: TestHelper::ROOT) do |program|
      url = program.gets.to_s.chomp
      waiting = TCPSocket.new("127.0.0.1", URI(url).port)
      assert_includes 1..20, Integer(program.gets)
      assert_equal "200", get(url).code
    ensure
      waiting&.close
      Process.kill(:KILL, program.pid)
    end
  end

  private

  # As a browser does, which may be too slow for a moment, too.
  #
  # @return [Integer] of the last event, once it is that number or a later one
  def read_again_and_again(server, number)
    last ||= 0
    open_stream(server, last: last) { |socket, _| last += read_events(socket, 1).size while last < number }
    last
  rescue EOFError
    retry
  end

  def crowd(server, *numbers)
    IO.popen([RbConfig.ruby, "-rio/wait", "-e", CROWD, server.port.to_s, *numbers], "r+", pgroup: true) do |program|
      assert program.gets, "the crowd is not connected"
      yield program
    ensure
      Process.kill(:KILL, program.pid)
    end
  end
end
