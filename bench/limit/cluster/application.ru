# frozen_string_literal: true

require "fiddle"
require "json"

# The applications, by KIND. Each request makes some garbage; what else it does is the kind's.
#
# - leaking: every request keeps 24 KB
# - bursting: one request of a hundred makes a document of 15 MB, and keeps nothing
# - native: every request has two buffers of 400 KB outside of Ruby's heap
# - forking: one request of twenty forks a process that makes 15 MB
KINDS = {
  "leaking" => ->(_number, kept) { kept << ("x" * 24_000) },
  "bursting" => lambda do |number, _kept|
    JSON.parse(JSON.generate(Array.new(40_000) { |i| { "id" => i, "name" => "row #{i}" } })) if (number % 100).zero?
  end,
  "native" => lambda do |_number, _kept|
    2.times { Fiddle::Pointer.malloc(400_000, Fiddle::RUBY_FREE)[0, 400_000] = "x" * 400_000 }
  end,
  "forking" => lambda do |number, _kept|
    Process.wait(fork { Array.new(150) { "x" * 100_000 } && exit!(0) }) if (number % 20).zero?
  end
}.freeze
WORK = KINDS.fetch(ENV.fetch("KIND"))
kept = []

run(lambda do |environment|
  Array.new(500) { |i| "garbage of a request #{i}" * 4 }
  WORK.call(Integer(environment["PATH_INFO"].delete_prefix("/")), kept)
  body = Process.pid.to_s
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
end)
