# frozen_string_literal: true

# A Rack application in Puma with five threads, as in a small dyno or container. A
# request filters a list of records and renders them as HTML or JSON; a rare one
# exports all records, which takes fifty times the memory.
#
# The published case: the memory of Puma servers grows under load, because the
# garbage of its threads is spread over many arenas (Heroku's "Tuning glibc Memory
# Behavior", Puma's and Rails' move to other allocators).
#
# PORT is the TCP port of 127.0.0.1; SIGTERM ends it. CULET_SCALE multiplies the
# number of records.

require "json"
require_relative "shared/server"

SCALE = Float(ENV.fetch("CULET_SCALE", "1"))
EXPORT_EVERY = 200
PAGE = 60

Record = Struct.new(:id, :title, :body, :tags)
RECORDS = Array.new((2_000 * SCALE).ceil.clamp(PAGE, nil)) do |id|
  tags = Array.new(id % 5) { |tag| "tag#{(id * tag) % 97}" }
  Record.new(id, "Record #{id}", "body of record #{id}, " * (5 + (id % 40)), tags)
end.freeze

def html(records)
  rows = records.map do |record|
    tags = record.tags.map { |tag| "<li>#{tag.upcase}</li>" }.join
    "<tr><td>#{record.id}</td><td>#{record.title}</td>" \
      "<td>#{record.body.gsub("record", "<b>record</b>")}</td><td><ul>#{tags}</ul></td></tr>"
  end
  "<!doctype html><title>records</title><table>#{rows.join("\n")}</table>"
end

def json(records) = JSON.generate(records.map(&:to_h))

counter = 0
lock = Mutex.new
application = lambda do |_environment|
  number = lock.synchronize { counter += 1 }
  type, body =
    if (number % EXPORT_EVERY).zero? then ["application/json", json(RECORDS)]
    else
      page = RECORDS.rotate((number * 37) % RECORDS.size).first(PAGE)
      number.even? ? ["application/json", json(page)] : ["text/html", html(page)]
    end
  [200, { "content-type" => type, "content-length" => body.bytesize.to_s }, [body]]
end

Server.run(application, threads: 5)
