# frozen_string_literal: true

# Each request makes garbage; one to /keep keeps a megabyte.

kept = []
run(lambda do |environment|
  Array.new(2000) { |index| "text #{index}" * 10 }
  kept << ("x" * 1_000_000) if environment["PATH_INFO"] == "/keep"
  [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
end)
