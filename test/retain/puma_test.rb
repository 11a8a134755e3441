# frozen_string_literal: true

require "servers/server_helper"
require "culet/model/retention/reading"

# A Puma with 16 threads serves through looks at what keeps its memory.
class RetainPumaTest < Minitest::Test
  include TestHelper
  include ServerHelper

  THREADS = 16
  LOOKS = 5
  # Keeps 100,000 objects, and makes some per request.
  APPLICATION_CODE = <<~RUBY
    PAGES = Array.new(50_000) { |number| { id: number, body: "page \#{number}" } }
    run(lambda do |environment|
      number = environment["QUERY_STRING"].to_i
      lines = PAGES[number, 50].map { |page| "\#{page[:id]} \#{page[:body]}" }
      [200, { "content-type" => "text/plain" }, [lines.join("\\n")]]
    end)
  RUBY

  def test_it_serves_through_looks
    Dir.mktmpdir do |folder|
      path = File.join(folder, "app.ru")
      File.write(path, APPLICATION_CODE)
      settings = File.join(folder, "puma.rb")
      File.write(settings, "threads #{THREADS}, #{THREADS}\nbind \"tcp://127.0.0.1:\#{ENV.fetch(\"PORT\")}\"\n")
      with_server("puma", "-C", settings, path, env: { "RUBYOPT" => "-rculet/agent" }) do |server|
        served = requests_beside(server) do
          looks = Array.new(LOOKS) { Culet::Retention::Reading.of_process(server.pid) }
          assert_includes looks.last["holders"].map { |one| one["name"] }, "PAGES"
        end
        assert_operator served, :>, THREADS
        refute_match(/error|exception/i, server.output)
      end
    end
  end

  private

  # Requests from as many clients as there are threads, until the block has returned.
  #
  # @return [Integer] their number; each had the right answer
  def requests_beside(server)
    done = false
    clients = Array.new(THREADS) { |at| Thread.new { client(server, at * 1_000) { done } } }
    yield
    done = true
    clients.sum(&:value)
  ensure
    done = true
    clients&.each(&:join)
  end

  def client(server, number)
    expected = Array.new(50) { |at| "#{number + at} page #{number + at}" }.join("\n")
    count = 0
    Net::HTTP.start("127.0.0.1", server.port, open_timeout: 60, read_timeout: 60) do |http|
      until yield
        response = http.get("/?#{number}")
        assert_equal ["200", expected], [response.code, response.body]
        count += 1
      end
    end
    count
  end
end
