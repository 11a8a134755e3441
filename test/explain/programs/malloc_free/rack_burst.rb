# frozen_string_literal: true

# says: eight requests at once, long ago
# shape: Rack in Puma, threaded
# free: 60
# elsewhere: none
require_relative "../../load"
Load.client(%w[/page], every: 0.1, before: %w[/burst])
require "bundler/setup"

KEPT = []
BURST = lambda do
  texts = Load.texts(15)
  KEPT.concat(texts.each_slice(40).map(&:first)) # HERE
  texts.clear
end
APPLICATION = lambda do |environment|
  if environment["PATH_INFO"] == "/burst"
    Array.new(8) { Thread.new { BURST.call } }.each(&:join)
    4.times { GC.start }
  end
  [200, { "content-type" => "text/plain" }, [Load.work(1)]]
end
Load.puma(APPLICATION, threads: 8)
