# frozen_string_literal: true

require "harness"
require "json"
require "words"

DOCUMENT = Array.new(2_000) do |number|
  { "id" => number, "title" => Words.text(number, 6), "ratio" => number / 7.0, "on" => number.even?,
    "tags" => Words::LIST.rotate(number).first(8), "text" => Words.text(number, 60) }
end.freeze

run_benchmark(80) { JSON.parse(JSON.generate(DOCUMENT), symbolize_names: true) }
