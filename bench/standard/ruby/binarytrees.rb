# frozen_string_literal: true

require "harness"

# Trees of arrays: made, counted and dropped while one of them stays.
def tree(depth) = depth.zero? ? [nil, nil] : [tree(depth - 1), tree(depth - 1)]
def count(node) = node.first ? 1 + count(node.first) + count(node.last) : 1

run_benchmark(4) do
  long = tree(16)
  4.step(16, 4) { |depth| (1 << (20 - depth)).div(4).times { count(tree(depth)) } }
  raise "a node is missing" unless count(long) == (1 << 17) - 1
end
