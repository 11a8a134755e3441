# frozen_string_literal: true

# Runs a program of leaks or steady under a load that allocates much more and keeps nothing of it, until it is killed or
# its parent ends.
load ARGV.fetch(0)

# What a request makes and forgets.
class Request
  def initialize(number) = @number = number

  def call
    params = { id: @number, name: "customer #{@number}", tags: Array.new(10) { |index| "tag #{index}" } }
    body = params.map { |key, value| "#{key}=#{value}" }.join("&")
    [200, { "length" => body.size.to_s }, [body * 4]]
  end
end

BATCH = 20
PAUSE_SECONDS = 0.01
# Warmed up: code is compiled, pools are made, small caches are full.
number = 0
serve = lambda do
  BATCH.times do
    Request.new(number).call
    work(number)
    number += 1
  end
  sleep PAUSE_SECONDS
end
100.times { serve.call }
puts "up"
$stdout.flush
parent = Process.ppid
serve.call while Process.ppid == parent
