# frozen_string_literal: true

# A simulated web server: five threads take requests from a queue, and each waits a little, as for a database. Most
# requests render rows as a page; others answer in JSON, read a form into a session, or export a large table. Pages are
# cached, sessions expire, and traffic pauses now and then, so that blocks of all sizes and ages are neighbours.
#
# The published case: application servers that run for hours. Many block sizes, caches and rare large responses leave
# holes in the heap that are never returned (Sam Saffron, "Ruby's Memory Allocation in 2019"; Heroku's "Tuning glibc
# Memory Behavior").
#
# CULET_SCALE multiplies the number of requests.

require "json"
require_relative "shared/rest"

THREADS = 5
REQUESTS = (6_000 * SCALE).ceil
# Of a hundred requests: the rest are pages.
JSON_SHARE = 25
FORM_SHARE = 15
EXPORT_EVERY = 400
EXPORT_ROWS = 2_000
CACHED_PAGES = 150
SESSIONS = 300
PAUSES = 4
PAUSE_SECONDS = 0.25

# Shared by all threads; the oldest entry is dropped first.
class Store
  def initialize(limit)
    @limit = limit
    @entries = {}
    @lock = Mutex.new
  end

  def empty? = @entries.empty?

  def [](key) = @lock.synchronize { @entries[key] }

  def []=(key, value)
    @lock.synchronize do
      @entries.delete(key)
      @entries[key] = value
      @entries.shift if @entries.size > @limit
    end
  end
end

def row(random, id)
  { id: id, title: "row #{id} " * random.rand(1..6), body: "text of row #{id}, " * random.rand(1..40),
    tags: Array.new(random.rand(5)) { "tag#{random.rand(97)}" }, price: random.rand(10_000) / 100.0 }
end

def rows(random, count) = Array.new(count) { |number| row(random, number) }

def html(rows)
  lines = rows.map do |row|
    "<tr><td>#{row[:title].capitalize}</td><td>#{row[:body].gsub("row", "<b>row</b>")}</td>" \
      "<td>#{row[:tags].join(", ")}</td></tr>"
  end
  "<!doctype html><table>#{lines.join("\n")}</table>"
end

def form(random)
  Array.new(random.rand(3..30)) { |field| "field#{field}=#{"v" * random.rand(1..600)}" }.join("&")
       .split("&").to_h { |pair| pair.split("=", 2) }
end

def answer(number, random, pages, sessions)
  kind = random.rand(100)
  if (number % EXPORT_EVERY) == EXPORT_EVERY / 2 then JSON.generate(rows(random, EXPORT_ROWS))
  elsif kind < JSON_SHARE then JSON.generate(JSON.parse(JSON.generate(rows(random, random.rand(5..80)))))
  elsif kind < JSON_SHARE + FORM_SHARE then (sessions["user#{random.rand(2 * SESSIONS)}"] = form(random)).to_s
  else
    path = "/pages/#{random.rand(4 * CACHED_PAGES)}"
    pages[path] || (pages[path] = html(rows(random, random.rand(5..60))))
  end
end

pages = Store.new(CACHED_PAGES)
sessions = Store.new(SESSIONS)
requests = SizedQueue.new(4 * THREADS)

servers = Array.new(THREADS) do
  Thread.new do
    bytes = 0
    while (number = requests.pop)
      sleep((number % 4) / 4_000.0)
      bytes += answer(number, Random.new(number), pages, sessions).bytesize
    end
    bytes
  end
end

REQUESTS.times do |number|
  sleep(PAUSE_SECONDS * SCALE.clamp(0, 1)) if number.positive? && (number % (REQUESTS / PAUSES.to_f).ceil).zero?
  requests << number + 1
end
requests.close
bytes = servers.sum(&:value)
abort("mixed: only #{bytes} bytes were answered") if bytes < REQUESTS || pages.empty? || sessions.empty?
Rest.call
