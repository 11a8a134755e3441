# frozen_string_literal: true

# Runs one of leaks/*.rb under a load that allocates ten times as much and keeps nothing of it, nor much of its code.
require_relative "../fixtures/request"
load ARGV.fetch(0)

rounds = Integer(ARGV.fetch(1))
rounds.times do |round|
  1_000.times do |step|
    Request.new(step).call
    work((round * 1_000) + step)
  end
  GC.start if round % 4 == 3
end
4.times { GC.start }
