# frozen_string_literal: true

require "trim/trim_helper"

# Requests before the fork: what the application sees of them, what they spare the children, and that nothing they do
# keeps a server from starting.
class WarmupRequestsTest < Minitest::Test
  include TrimHelper

  # Tells what it was asked; its pages are as good and bad as their names.
  APPLICATION = <<~RUBY
    SEEN = []
    CLOSED = []
    BODY = Struct.new(:path) do
      def each = SEEN << "read \#{path}"
      def close = CLOSED << path
    end
    APP = lambda do |environment|
      path = environment["PATH_INFO"]
      SEEN << environment.values_at("REQUEST_METHOD", "rack.url_scheme", "HTTP_HOST", "PATH_INFO", "QUERY_STRING", "SERVER_PORT").join(" ")
      raise "it broke\nhere" if path == "/raises"
      raise Timeout::Error, "of its own" if path == "/gives-up"
      raise NotImplementedError, "not on this machine" if path == "/lacks"

      sleep if path == "/hangs"
      [path[/\\d{3}/]&.to_i || 200, {}, BODY.new(path)]
    end
  RUBY

  def test_the_application_is_asked_as_by_a_browser
    seen, closed, steps = warmed(<<~RUBY).first
      told = Culet.warmup(requests: ["/", "/a%20b?c=d&e", "http://example.com:8080/x", "https://example.com"], app: APP)
      tell([SEEN, CLOSED, told[:steps]])
    RUBY
    assert_equal ["GET https localhost /  443", "read /", "GET https localhost /a%20b c=d&e 443", "read /a%20b",
                  "GET http example.com:8080 /x  8080", "read /x", "GET https example.com /  443", "read /"], seen
    assert_equal ["/", "/a%20b", "/x", "/"], closed
    assert_equal "requests", steps.first
    refute_includes steps, "connections", "there is no Active Record here"
  end

  def test_what_goes_wrong_is_told_and_ends_nothing
    out, err = said(<<~RUBY)
      steps = Culet.warmup(requests: %w[/raises /gives-up /lacks /500 /404 /302 /], app: APP, steps: [:collect])[:steps]
      tell([steps, SEEN.last])
    RUBY
    assert_equal [%w[requests collect], "read /"], out
    assert_equal ["culet: the request for https://localhost/raises failed: RuntimeError: it broke",
                  "culet: the request for https://localhost/gives-up failed: Timeout::Error: of its own",
                  "culet: the request for https://localhost/lacks failed: NotImplementedError: not on this machine",
                  "culet: the request for https://localhost/500 returned status 500",
                  "culet: the request for https://localhost/404 returned status 404"], err.lines(chomp: true)
  end

  # Two seconds may pass before that page is asked for.
  def test_a_page_that_never_ends_is_given_up
    (problems, seen), err = assert_settles("the page is come to") do
      said("tell([Culet::Warmup::Requests.new(%w[/404 /hangs /], app: APP, seconds: 2).call, SEEN.size])").then { |told| told if told[0][1] > 2 }
    end
    assert_empty err
    assert_equal 3, seen, "the last page was not asked for any more"
    assert_equal ["the request for https://localhost/404 returned status 404",
                  "the warm-up requests were stopped after 2 s, at https://localhost/hangs"], problems
  end

  def test_without_an_application_that_is_said
    out, err = said("tell(Culet.warmup(requests: ['/'], steps: [:collect])[:steps])")
    assert_equal %w[requests collect], out
    assert_match(/\Aculet: no application for the warm-up requests/, err)
  end

  def test_addresses_are_looked_at_when_they_are_named
    ["issues", "", "ftp://example.com/", "/a b", "http://", nil].each do |address|
      sentence, = warmed("begin; Culet::Warmup.requests = [#{address.inspect}]; rescue ArgumentError => e; tell(e.message); end").first(1)
      assert_match(/\A#{Regexp.escape(address.inspect)} is not an address for the warm-up/, sentence)
    end
  end

  def test_those_named_once_are_asked_for_by_each_warm_up_that_names_none
    seen, = warmed("Culet::Warmup.requests = '/x'; Culet.warmup(app: APP, steps: []); Culet.warmup(app: APP, requests: [], steps: []); tell(SEEN)")
    assert_equal ["GET https localhost /x  443", "read /x"], seen
  end

  # What a first request builds is built once.
  def test_children_share_what_requests_have_built
    without, with = ["[]", "['/']"].map do |requests|
      warmed(<<~RUBY).first
        table = nil
        app = ->(_) { table ||= Array.new(60_000) { |number| "entry number \#{number} of a table that is made when it is first needed" }; [200, {}, []] }
        Culet.warmup(requests: #{requests}, app: app)
        reader, writer = IO.pipe
        fork do
          app.call({})
          writer.puts(File.read("/proc/self/smaps_rollup").scan(/^Private_\\w+:\\s+(\\d+)/).sum { |(kilobytes)| kilobytes.to_i })
          exit!
        end
        tell(reader.gets.to_i * 1024)
        Process.wait
      RUBY
    end
    assert_operator without - with, :>, 5_000_000, "#{without} bytes of its own without, #{with} with requests before the fork"
  end

  private

  def warmed(script) = run_trimmed(APPLICATION + script, auto: false)

  # @return [Array] what was told, and what was said on standard error
  def said(script)
    out, err = assert_success(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-e", PRELUDE + APPLICATION + script, env: TestHelper::NEUTRAL)
    [JSON.parse(out), err]
  end
end
