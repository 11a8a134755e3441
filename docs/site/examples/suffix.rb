# frozen_string_literal: true

# The lesson of the shared suffix: a slice that goes to the end of its string shares the string's bytes, one from the
# middle copies them, and an equal string built anew has bytes of its own.
#
#   ruby docs/site/examples/suffix.rb
require "objspace"

# @param string [String]
# @return [Boolean] whether its bytes lie in another string
def shares?(string) = ObjectSpace.dump(string).include?('"shared":true')

# A path as a load path index holds it, and what three ways to take a feature's name out of it make: with a whole of 60
# bytes, and with one that is too long for any slot.
["", "x" * 1000].each do |filler|
  whole = "/srv/app/#{filler}lib/library/concerns/part/of_the_whole_path.rb"
  name = "library/concerns/part/of_the_whole_path.rb"
  from = whole.bytesize - name.bytesize
  strings = { "the whole" => whole.freeze, "its end, whole[from..]" => whole[from..],
              "its middle, whole[from...-3]" => whole[from...-3],
              "built anew, equal to the end" => ["library/concerns/part", "of_the_whole_path.rb"].join("/") }
  strings.each do |what, string|
    puts format("%-30s %5d bytes of text, %5d held%s", what, string.bytesize, ObjectSpace.memsize_of(string),
                (", shares" if shares?(string)).to_s)
  end
  puts
end
