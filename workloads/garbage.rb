# frozen_string_literal: true

# Makes strings of 3 to 10 KB by turns and keeps fifty of them, on one thread. The least that a collection leaves is
# small; the peak shows how much an allocator adds to the garbage between two collections.
#
# The published case: rendered pages and query results, most of which live for one request, as Ruby's Feature #14718
# describes them; here without threads.
#
# CULET_SCALE multiplies the number of strings.

require_relative "shared/rest"

STRINGS = (200_000 * SCALE).ceil
KEPT = 50
KILOBYTES = (3..10).to_a.freeze

kept = Array.new(KEPT)
# A short string each time, so that collections begin when Ruby's slots are used up as well.
STRINGS.times { |number| kept[number % KEPT] = +"x" * (KILOBYTES[number % KILOBYTES.size] * 1_024) }
abort("garbage: the strings are gone") if kept.none?
Rest.call
