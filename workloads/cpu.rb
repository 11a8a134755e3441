# frozen_string_literal: true

# Short-lived small objects: builds and drops binary trees, and counts the words of
# lines. It holds little memory and shows the CPU time of allocation.
#
# The published case: the binary-trees program of the Computer Language Benchmarks
# Game, which authors of allocators and collectors use, and the parsing of logs.
#
# CULET_SCALE multiplies the number of rounds.

require_relative "shared/rest"

ROUNDS = (60 * SCALE).ceil
DEPTH = 13
LINES = 4_000

def tree(depth) = depth.zero? ? [nil, nil] : [tree(depth - 1), tree(depth - 1)]

def size(node) = node[0] ? 1 + size(node[0]) + size(node[1]) : 1

def words(round)
  counts = Hash.new(0)
  LINES.times do |line|
    text = "2024-05-#{line % 28} GET /posts/#{line * round}/comments?page=#{line % 9} 200 in #{line}ms " \
           "by worker-#{line % 5}"
    text.split(%r{[ /?=]}).each { |word| counts[word] += 1 }
  end
  counts.size
end

nodes = 0
ROUNDS.times do |round|
  nodes += size(tree(DEPTH))
  abort("cpu: the words of round #{round} are gone") if words(round).zero?
end
abort("cpu: #{nodes} nodes") unless nodes == ROUNDS * ((2**(DEPTH + 1)) - 1)
Rest.call
