# frozen_string_literal: true

require "test_helper"
require "json"
require "net/http"
require "socket"
require "culet/tools/live/history"
require "culet/tools/live/page"
require "culet/tools/live/recorder"
require "culet/tools/live/recording"
require "culet/tools/live/server"
require "culet/tools/live/state"

# Moments made up, and what reads them.
module LiveHelper
  include Culet::Live

  PATIENCE = 60
  START = 1_790_000_000.0
  LEVELS = { "ruby_objects" => 8_000_000, "malloc_used" => 30_000_000, "malloc_free" => 4_000_000, "other" => -1000 }.freeze

  module_function

  # A process of the sampler.
  def process(pid, title: "puma: cluster worker #{pid}", bytes: 50_000_000, figures: true, **more)
    own = { "levels" => LEVELS.merge("libraries_and_files" => bytes - LEVELS.values.sum), "malloc_used_bytes" => 30_000_000, "malloc_free_bytes" => 4_000_000,
            "live_slots" => 200_000, "free_slots" => 1000, "minor_gcs" => 5, "major_gcs" => 1, "gc_per_minute" => nil, "allocated_objects" => 900_000,
            "trims" => nil, "trim_returned_bytes" => nil, "profile" => false }
    { "pid" => pid, "parent_pid" => 1, "start_ticks" => 1000 + pid, "started_at" => START - 100, "title" => title, "ruby" => true, "rss_bytes" => bytes,
      "pss_bytes" => bytes - 10_000_000, "private_bytes" => bytes - 20_000_000, "shared_bytes" => 20_000_000, "swap_bytes" => 0, "growth_bytes" => 0,
      "cpu_seconds" => 1.5, "threads" => 7, "figures" => figures ? own : nil }.merge(more.transform_keys(&:to_s))
  end

  # A moment of the sampler.
  def moment(number, processes, events: [], limit: nil)
    sums = %w[rss_bytes pss_bytes private_bytes shared_bytes swap_bytes growth_bytes].to_h { |name| [name, processes.sum { |one| one[name] }] }
    { "at" => START + number, "seconds" => 0.004, "processes" => processes, "total" => sums, "limit" => limit, "events" => events }
  end

  def event(number, pid, kind, text = kind) = { "at" => START + number, "pid" => pid, "kind" => kind, "text" => text, "bytes" => nil }

  # Moments of a cluster: a worker grows, another ends in the middle.
  def moments(count, workers: 2)
    Array.new(count) do |number|
      alive = (1..workers).reject { |one| one == workers && number > count / 2 }
      processes = [process(10, title: "puma 6.6.0 [shop]"), *alive.map { |one| process(10 + one, bytes: 50_000_000 + (one * number * 100_000)) }]
      moment(number, processes, events: number == (count / 2) + 1 ? [event(number, 10 + workers, "exit", "ended")] : [])
    end
  end

  def frames(moments)
    encoder = Encoder.new
    moments.map { |moment| encoder.call(State.of(moment), moment["events"]) }
  end

  # @return [History] with these frames
  def history(frames, **limits) = History.new(**limits).tap { |history| frames.each { |frame| history.add(frame) } }

  # @return [Array<Hash>] the states that frames, or lines of JSON, stand for
  def states(frames)
    frames.each_with_object([]) do |frame, all|
      body = JSON.parse(frame.respond_to?(:text) ? frame.text : frame)
      all << (body["full"] || MergePatch.apply(all.last, body.fetch("patch")))
    end
  end

  # Writes a recording, as `culet live --record` does.
  def record(path, moments, subject: "puma")
    recorder = Recorder.new(path, subject: subject, every_seconds: 1.0)
    frames(moments).each { |frame| recorder.add(frame) }
  ensure
    recorder&.close
  end

  # Serves a history.
  #
  # @yieldparam server [Culet::Live::Server]
  # @yieldparam notes [StringIO]
  def with_server(history, page: Page.new(subject: "puma", every_seconds: 1.0), **options)
    notes = StringIO.new
    server = Server.new(history: history, page: page, notes: notes, **options)
    server.start
    yield server, notes
  ensure
    server&.close
  end

  # @return [Net::HTTPResponse]
  def get(url, headers = {}, method: Net::HTTP::Get)
    uri = URI(url)
    Net::HTTP.start(uri.host, uri.port, open_timeout: PATIENCE, read_timeout: PATIENCE) { |http| http.request(method.new(uri.path, headers)) }
  end

  # A connection to the stream of events, after the head of the answer.
  def open_stream(server, last: nil, buffer_bytes: nil)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, buffer_bytes) if buffer_bytes
    socket.connect(Socket.sockaddr_in(server.port, "127.0.0.1"))
    socket.write("GET #{URI(server.url).path}moments HTTP/1.1\r\nHost: 127.0.0.1:#{server.port}\r\n#{"Last-Event-ID: #{last}\r\n" if last}\r\n")
    head = +""
    head << socket.readline until head.end_with?("\r\n\r\n")
    yield socket, head
  ensure
    socket&.close
  end

  # @return [Array<String>] data of so many events
  def read_events(socket, count)
    found = []
    while found.size < count
      assert socket.wait_readable(PATIENCE), "no event came"
      line = socket.readline
      found << line.delete_prefix("data: ").chomp if line.start_with?("data: ")
    end
    found
  end
end
