# frozen_string_literal: true

# Runs one of leaks/*.rb under a load that allocates ten times as much and keeps nothing of it, nor much of its code.
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

rounds = Integer(ARGV.fetch(1))
rounds.times do |round|
  1_000.times do |step|
    Request.new(step).call
    work((round * 1_000) + step)
  end
  GC.start if round % 4 == 3
end
4.times { GC.start }
