# frozen_string_literal: true

# A hash of 600,000 string keys grows by rehashing, is read, loses every third entry
# and is filled again.
#
# The published case: caches, identity maps and parsed documents of hundreds of
# thousands of entries. It shows how an allocator rounds up large tables and many
# medium-sized blocks (Sam Saffron's allocator_bench retains strings likewise).
#
# CULET_SCALE multiplies the number of keys.

require_relative "shared/rest"

KEYS = (600_000 * SCALE).ceil

def entry(number) = "the value of key #{number}; " * (1 + (number % 4))

table = {}
KEYS.times { |number| table["key:#{number}:#{number * 2_654_435_761 % 65_536}"] = entry(number) }
long = table.each_value.count { |value| value.size > 60 }
seen = 0
table.delete_if { ((seen += 1) % 3).zero? }
(KEYS / 3).times { |number| table["new:#{number}"] = entry(number) }
abort("hash: #{table.size} entries, #{long} of them long") unless table.size >= KEYS - 1 && long.positive?
Rest.call
