# frozen_string_literal: true

require "harness"
require "psych"
require "words"

DOCUMENT = Array.new(300) do |number|
  { "id" => number, "title" => Words.text(number, 6), "ratio" => number / 7.0, "on" => number.even?,
    "tags" => Words::LIST.rotate(number).first(8), "text" => Words.paragraphs(number, 2),
    "nested" => { "name" => Words.text(number, 2), "list" => [nil, true, number, "#{number}: yes"] } }
end.freeze

run_benchmark(25) { Psych.load(Psych.dump(DOCUMENT)) }
