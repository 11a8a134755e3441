# frozen_string_literal: true

# Each request to /leak keeps as many bytes as BYTES says.
require "json"

kept = []
run(lambda do |environment|
  kept << ("x" * Integer(ENV.fetch("BYTES"))) if environment["PATH_INFO"] == "/leak"
  body = environment["PATH_INFO"] == "/status" ? JSON.generate(Culet::Limit.status) : Process.pid.to_s
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
