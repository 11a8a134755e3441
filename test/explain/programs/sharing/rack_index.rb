# frozen_string_literal: true

# says: each worker rewrites the records that it inherited, at its first request
# shape: Rack in Puma, forked
# unshared: 30
require_relative "../../load"
Load.client(%w[/page], every: 0.05)
require "bundler/setup"

RECORDS = Load.texts(40)
INDEXED = []
APPLICATION = lambda do |_environment|
  RECORDS.each { |text| text.replace(text.swapcase) } if INDEXED.empty? # HERE
  INDEXED << true if INDEXED.empty?
  [200, { "content-type" => "text/plain" }, [Load.work(1)]]
end
Load.puma(APPLICATION, workers: 3, threads: 1)
