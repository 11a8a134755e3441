# frozen_string_literal: true

require "harness"
use_gemfile
require "hexapdf"
require "stringio"
require "words"

# Makes a document, then reads it and writes it compressed.
run_benchmark(4) do
  file = StringIO.new("".b)
  composer = HexaPDF::Composer.new
  40.times { |number| composer.text(Words.paragraphs(number, 8), font_size: 11) }
  composer.write(file)
  document = HexaPDF::Document.new(io: StringIO.new(file.string))
  document.task(:optimize, compact: true, object_streams: :generate, compress_pages: true)
  document.write(StringIO.new("".b))
end
