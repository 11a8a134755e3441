# frozen_string_literal: true

# Compares what was read of a glibc heap with what malloc itself says of it.
module ExactFigures
  # @param line [String] what the targets say: "mallinfo uordblks=1200 ..."
  # @return [Hash{String => Integer}]
  def figures_in(line) = line.scan(/(\w+)=(\d+)/).to_h { |key, value| [key, value.to_i] }

  # @param figures [Hash{String => Integer}] of mallinfo2: uordblks, fordblks, hblks, hblkhd, fsmblks
  # @param malloc [Hash{String => Object}] the figures that were read, as `culet map --json` has them
  # @param problems [Array<String>] of that reading
  def assert_figures(figures, malloc, problems, about)
    cached = malloc.fetch("tcache_bytes")
    read = { "uordblks" => malloc.fetch("used_bytes") + cached - malloc.fetch("tcache_mmapped_bytes"),
             "fordblks" => malloc.fetch("free_resident_bytes") + malloc.fetch("free_returned_bytes") - cached,
             "hblks" => malloc.fetch("mmapped_chunks"), "hblkhd" => malloc.fetch("mmapped_bytes"), "fsmblks" => malloc.fetch("fastbin_bytes") }
    assert_equal figures.slice(*read.keys), read, about
    assert_empty problems, about
  end
end
