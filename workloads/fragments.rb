# frozen_string_literal: true

# 20 threads build texts from random fragments, upcase and slice them, and join some
# of the slices; each thread keeps a small part of the results.
#
# The published case: the string work of templates and serializers in threaded
# servers, the usual way to show how glibc's arenas fragment under Ruby (Ruby's
# Features #14718 and #14759).
#
# CULET_SCALE multiplies the number of texts.

require_relative "shared/rest"

THREADS = 20
TEXTS = (700 * SCALE).ceil
KEPT = 8

def text(random)
  parts = Array.new(50 + random.rand(100)) { ("a".ord + random.rand(26)).chr * random.rand(10..400) }
  whole = parts.join(" ").upcase
  slices = Array.new(40) { whole[random.rand(whole.size), random.rand(20..2_000)] }
  slices.sample(20, random: random).join("\n")
end

def write(random)
  kept = Array.new(KEPT)
  TEXTS.times { kept[random.rand(KEPT)] = text(random) }
  kept
end

workers = Array.new(THREADS) { |number| Thread.new { write(Random.new(number)) } }
abort("fragments: the texts are gone") if workers.flat_map(&:value).none?
Rest.call
