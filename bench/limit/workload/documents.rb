# frozen_string_literal: true

# Parses a document of 1.3 MB again and again, and keeps the last one.
require "json"

row = ->(i) { { "id" => i, "name" => "row #{i}", "tags" => %w[a b c], "price" => i / 7.0 } }
text = JSON.generate(Array.new(10_000, &row))
kept = nil
120.times { kept = JSON.parse(text) }
abort("the document is gone") unless kept.size == 10_000
