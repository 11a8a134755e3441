# frozen_string_literal: true

require "test_helper"
require "culet/tools/profile/pyroscope"
require_relative "pyroscope_server"

# Profiles that are pushed to a server, whatever the server does.
class ProfilePyroscopeTest < Minitest::Test
  FROM = Time.at(1_700_000_000)
  TO = Time.at(1_700_000_060)

  def test_a_profile_arrives_as_pyroscope_takes_it
    with_server do |server|
      client = push(server.address, name: "shop{region=eu}")
      client.write("content \0\xff".b, FROM, TO)
      request = server.requests.pop
      assert_equal ["/ingest", "content \0\xff".b], [request.path, request.body.b]
      assert_equal({ "name" => "shop{region=eu}", "from" => "1700000000", "until" => "1700000060", "format" => "pprof", "spyName" => "culet" }, request.query)
      assert_nil request.headers["authorization"]
      client.close
      assert_equal [1, 0, ""], [client.sent, client.dropped, @notes.string]
    end
  end

  def test_paths_and_credentials
    cases = { ["/", {}] => ["/ingest", nil, nil], ["/base", {}] => ["/base/ingest", nil, nil], ["/ingest/", {}] => ["/ingest", nil, nil],
              ["", { "CULET_PUSH_USER" => "me", "CULET_PUSH_PASSWORD" => "se:cret" }] => ["/ingest", "Basic #{["me:se:cret"].pack("m0")}", nil],
              ["", { "CULET_PUSH_TOKEN" => "abc", "CULET_PUSH_TENANT" => "shop" }] => ["/ingest", "Bearer abc", "shop"] }
    cases.each do |(path, environment), expected|
      with_server do |server|
        client = push("#{server.address}#{path}", environment: environment)
        client.write("x", FROM, TO)
        request = server.requests.pop
        assert_equal expected, [request.path, *request.headers.values_at("authorization", "x-scope-orgid")]
        client.close
      end
    end
  end

  def test_a_user_in_the_address_is_sent_and_never_printed
    with_server(->(*) { "HTTP/1.1 401 Unauthorized\r\nContent-Length: 7\r\n\r\nno\e[2J\n" }) do |server|
      client = push(server.address.sub("//", "//me:p%40ss@"))
      client.write("x", FROM, TO)
      assert_equal "Basic #{["me:p@ss"].pack("m0")}", server.requests.pop.headers["authorization"]
      client.close
      assert_equal "culet: #{server.address} refuses a profile: it answers 401 Unauthorized: no [2J\n", @notes.string
      assert_equal [0, 1], [client.sent, client.dropped]
    end
  end

  def test_a_server_that_is_down_for_a_while
    answers = [->(*) { "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy" },
               ->(*) {}, ->(*) { "no HTTP at all\r\n\r\n" }]
    with_server(->(count, socket) { answers.fetch(count - 1, ->(*) { PyroscopeServer::OK }).call(count, socket) }) do |server|
      client = push(server.address)
      %w[first second third fourth].each { |content| client.write(content, FROM, TO) }
      assert_equal %w[first first first first second third fourth], Array.new(7) { server.requests.pop.body }
      client.close
      assert_equal [4, 0, nil], [client.sent, client.dropped, client.problem]
      notes = @notes.string.lines
      assert_equal "culet: cannot push to #{server.address}: it answers 503 Service Unavailable: busy; trying again\n", notes.first
      assert_equal "culet: #{server.address} accepts profiles again\n", notes.last
    end
  end

  # The newest stay, however long the server is away.
  def test_a_server_that_never_answers_holds_up_nothing
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    client = push("http://127.0.0.1:#{port}")
    most = Culet::Profile::Pyroscope::MOST_WAITING
    (most + 5).times { |number| client.write(number.to_s, FROM, TO) }
    assert_equal 5, client.dropped
    client.close
    assert_equal [0, most + 5], [client.sent, client.dropped]
    assert_match(/\Aculet: cannot push to .*Connection refused.*; trying again\n\z/i, @notes.string)
    assert_equal @notes.string, "culet: #{client.problem}; trying again\n"
  end

  def test_what_waits_is_sent_at_the_end
    down = true
    with_server(->(*) { down ? "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n" : PyroscopeServer::OK }) do |server|
      client = push(server.address)
      3.times { |number| client.write(number.to_s, FROM, TO) }
      down = false
      client.close
      assert_equal [3, 0], [client.sent, client.dropped]
    end
  end

  # Neither the answer's body nor a redirection is followed.
  def test_answers_without_end
    endless = lambda do |_, socket|
      socket.write("HTTP/1.1 400 Bad Request\r\n\r\n")
      loop { socket.write("x" * 65_536) }
    end
    with_server(endless) do |server|
      client = push(server.address)
      client.write("x", FROM, TO)
      client.close
      assert_match(/it answers 400 Bad Request: x{200}\n/, @notes.string)
    end
    with_server(->(*) { "HTTP/1.1 302 Found\r\nLocation: http://example.invalid/\r\nContent-Length: 0\r\n\r\n" }) do |server|
      client = push(server.address)
      client.write("x", FROM, TO)
      client.close
      assert_match(/refuses a profile: it answers 302 Found \(give the address that it leads to\)/, @notes.string)
    end
  end

  def test_what_is_no_address
    ["", "localhost:4040", "ftp://a/", "http://", "http://a b/", "https://me:secret@h/?q=1"].each do |address|
      error = assert_raises(Culet::UsageError) { push(address) }
      assert_match(/\A--push takes an address/, error.message)
      refute_includes error.message, "secret"
    end
    error = assert_raises(Culet::Error) { push("http://localhost", environment: { "CULET_PUSH_TOKEN" => "a\r\nX: y" }) }
    assert_equal "CULET_PUSH_TOKEN contains a control character", error.message
  end

  private

  def push(address, name: "app", environment: {})
    @notes = StringIO.new
    Culet::Profile::Pyroscope.new(address, name: name, notes: @notes, environment: environment)
  end

  def with_server(answer = nil)
    server = PyroscopeServer.new(&answer)
    yield server
  ensure
    server&.close
  end
end
