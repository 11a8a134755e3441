# frozen_string_literal: true

# A program whose strings could share: it keeps the paths of a library, and beside each the name that a `require` would
# use, built anew; and rows as they come from a database, with the same words again and again.
#
#   ruby -rculet/agent docs/site/examples/paths.rb &
#   culet strings $! --html strings.html
STATES = ["waiting for an answer of the customer", "closed, because nobody answered in time"].freeze

paths = Array.new(4000) do |number|
  "/srv/app/vendor/gems/library-1.2/lib/library/parts/part_#{number}/of_the_whole.rb".freeze
end
names = Array.new(4000) { |number| ["library/parts/part_#{number}", "of_the_whole.rb"].join("/") }
rows = Array.new(6000) { |number| { number: number, state: STATES[number % 2].dup << "" } }

puts "ready: #{paths.size + names.size + rows.size} strings and more"
$stdout.flush
sleep
