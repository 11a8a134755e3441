# frozen_string_literal: true

# says: workers parse a large document now and then
# shape: small, forked
# peak: 40
require_relative "../../load"

require "json"
DOCUMENT = JSON.generate(Array.new(40_000) { |id| { "id" => id, "name" => "customer #{id}", "tags" => %w[a b c] } })
Load.workers(2) do |number|
  ticks = 50 * number
  Load.repeat(every: 0.1) do
    Load.work(ticks += 1)
    next unless (ticks % 120).zero?

    parsed = JSON.parse(DOCUMENT) # HERE
    text = Load.texts(30)
    sleep(1.5)
    [parsed, text].each(&:clear)
    GC.start
  end
end
