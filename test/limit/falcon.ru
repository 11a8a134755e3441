# frozen_string_literal: true

# leak.ru, whose requests wait a while.
require "culet/falcon"

use Culet::Falcon
leak = Rack::Builder.parse_file(File.expand_path("leak.ru", __dir__))
leak = leak.first if leak.is_a?(Array) # Rack 2
run(lambda do |environment|
  sleep 0.05 if environment["PATH_INFO"] == "/leak"
  leak.call(environment)
end)
