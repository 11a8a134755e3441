# frozen_string_literal: true

# /busy holds the GVL for a while.

require "culet/metrics"

use Culet::Metrics::Rack
run(lambda do |environment|
  Array.new(3_000_000) { |index| index ^ 0x15a5a5 }.sort! if environment["PATH_INFO"] == "/busy"
  [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
end)
