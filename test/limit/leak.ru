# frozen_string_literal: true

# Each request to /leak keeps as many bytes as BYTES says, until one to /forget.
require "json"

kept = []
run(lambda do |environment|
  kept << ("x" * Integer(ENV.fetch("BYTES"))) if environment["PATH_INFO"] == "/leak"
  kept.clear if environment["PATH_INFO"] == "/forget"
  body = case environment["PATH_INFO"]
         when "/status" then JSON.generate(Culet::Limit.status)
         when "/pool" then Puma.stats
         else Process.pid.to_s
         end
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
