# frozen_string_literal: true

require "harness"
use_gemfile
require "kramdown"
require "words"

PAGE = Array.new(60) do |number|
  "## #{Words.text(number, 4)}\n\n#{Words.paragraphs(number, 2)}\n\n* *#{Words.text(number, 8)}*\n" \
    "* [#{Words.text(number, 2)}](page-#{number}.html)\n\n| a | b |\n|---|---|\n| `#{number}` | **#{number}** |\n\n"
end.join

run_benchmark(25) { Kramdown::Document.new(PAGE).to_html }
