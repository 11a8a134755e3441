# frozen_string_literal: true

# What the soak runs: Puma with eight threads, whose requests are of all the kinds that a long-lived server gets mixed:
# small pages and JSON, texts that grow as they are written, a cache of values of all sizes that forgets the oldest, now
# and then an export that takes a hundred times the memory, threads that come and go, children that are forked, work and
# end, and a compaction of the heap. How much is alive stays the same; so must the resident memory.
#
# PORT is the TCP port of 127.0.0.1; SIGTERM ends it.

require "digest"
require "json"
require "puma"
require "puma/configuration"
require "puma/launcher"
require "zlib"

# A bounded cache: what is looked up and not found is made; the oldest goes when there are too many.
class Cache
  def initialize(entries)
    @entries = entries
    @values = {}
    @lock = Mutex.new
  end

  def fetch(key)
    @lock.synchronize do
      value = @values.delete(key) || yield
      @values[key] = value
      @values.shift if @values.size > @entries
      value
    end
  end
end

# The application. The number of a request, counted over all threads, decides its kind and its size.
class Application
  THREADS = 8
  CACHED = 4_000
  KEYS = 6_000 # of which the cache holds two thirds
  LARGEST_CACHED = 20_000
  RECORDS = Array.new(1_500) do |id|
    { id: id, title: "Record #{id}", body: "body of record #{id}, " * (5 + (id % 40)), tags: Array.new(id % 5) { |tag| "tag#{tag * id % 97}" } }
  end.freeze
  # What is done every so many requests, the rarest first; all others are pages.
  RARE = { 20_011 => :compact, 3_001 => :child, 997 => :thread, 401 => :export, 53 => :upload, 17 => :pack }.freeze

  def initialize
    @counter = 0
    @lock = Mutex.new
    @cache = Cache.new(CACHED)
  end

  def call(environment)
    return figures if environment["PATH_INFO"] == "/figures"

    number = @lock.synchronize { @counter += 1 }
    kind = RARE.find { |every, _| (number % every).zero? }&.last || %i[page json cached text].fetch(number % 4)
    answer(200, send(kind, number))
  rescue StandardError => e
    warn("soak server: request #{number}, a #{kind}: #{e.message} (#{e.class})")
    answer(500, e.message)
  end

  private

  def answer(status, body) = [status, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]

  # What Ruby itself holds: its pages of objects grow by its own rules, whatever the allocator does.
  def figures
    answer(200, JSON.generate(pages: GC.stat(:heap_allocated_pages), live: GC.stat(:heap_live_slots), collections: GC.count))
  end

  def some_records(number, count) = Array.new(count) { |i| RECORDS[((number * 37) + (i * 11)) % RECORDS.size] }

  def page(number)
    rows = some_records(number, 1 + (number % 40)).map do |record|
      tags = record[:tags].map { |tag| "<li>#{tag.upcase}</li>" }.join
      "<tr><td>#{record[:id]}</td><td>#{record[:body].gsub("record", "<b>record</b>")}</td><td><ul>#{tags}</ul></td></tr>"
    end
    "<!doctype html><title>records</title><table>#{rows.join("\n")}</table>"
  end

  def json(number) = JSON.generate(JSON.parse(JSON.generate(some_records(number, 1 + (number % 25)))))

  # Numbers that are spread evenly over the keys, and again over the sizes, without two alike in a row.
  def cached(number)
    key = number * 2_654_435_761 % KEYS
    @cache.fetch(key) { Random.new(number).bytes(64 + (number * 40_503 % LARGEST_CACHED)) }.byteslice(0, 1_000)
  end

  # A text that grows piece by piece, as a template writes it.
  def text(number)
    out = +""
    (20 + (number % 300)).times { |i| out << "line " << i.to_s << " of request " << number.to_s << "\n" }
    out
  end

  def upload(number)
    body = "x" * (50_000 + (number * 7_919 % 2_000_000))
    Digest::SHA256.hexdigest(body)
  end

  def pack(number) = Digest::MD5.hexdigest(Zlib.inflate(Zlib.deflate(page(number))))

  def export(_number) = JSON.generate(RECORDS * 2)

  def thread(number) = Array.new(3) { |i| Thread.new { page(number + i).bytesize } }.sum(&:value).to_s

  # The child builds and drops what a request does, collects the garbage and ends without the server's exit handlers.
  def child(number)
    pid = fork do
      200.times { |i| page(number + i) && json(number + i) }
      GC.start
      exit!(0)
    end
    _, status = Process.wait2(pid)
    raise "the child of request #{number} ended with #{status}" unless status.success?

    "a child has worked"
  end

  def compact(_number)
    GC.respond_to?(:compact) ? GC.compact : GC.start
    "compacted"
  end
end

configuration = Puma::Configuration.new do |settings|
  settings.bind("tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}")
  settings.threads(Application::THREADS, Application::THREADS)
  settings.workers(0)
  settings.app(Application.new)
end
# Errors only: what Puma answers with 400 or 500 by itself shows up nowhere else.
Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.new(File.open(File::NULL, "w"), $stderr)).run
