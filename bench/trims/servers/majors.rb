# frozen_string_literal: true

# Puma with five threads: each request drops some megabytes of small strings, every tenth runs a full collection. The
# worst case for trims after major collections, since the memory is wanted again at once.
#
# PORT: on 127.0.0.1. CULET_SCALE multiplies the strings.

require_relative "../../../workloads/shared/server"

STRINGS = (6_000 * Float(ENV.fetch("CULET_SCALE", "1"))).ceil
BYTES = 600
COLLECT_EVERY = 10

counter = 0
lock = Mutex.new
application = lambda do |_environment|
  number = lock.synchronize { counter += 1 }
  body = Array.new(STRINGS) { "x" * BYTES }.size.to_s
  GC.start if (number % COLLECT_EVERY).zero?
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end

Server.run(application, threads: 5)
