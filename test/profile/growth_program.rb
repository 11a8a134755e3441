# frozen_string_literal: true

# A program under steady load: what it keeps depends on its first argument. Prints "up" once it serves.
#
#   ruby growth_program.rb leak|fill|traffic|pool|garbage|rack|stacks
require "json"

# What a boot keeps.
BOOT = Array.new(20_000) { |number| "route #{number} " * 20 }

# One kind of program each: `call` is a request.
module Programs
  # Keeps a session of every request.
  class Leak
    SESSIONS = [] # rubocop:disable Style/MutableConstant

    def call(number)
      SESSIONS << ("session #{number} " * 40) # LEAK
    end
  end

  # A cache of 500 pages.
  class Fill
    def initialize = @pages = {}
    def call(number) = @pages[number % 500] ||= "page #{number} " * 60
  end

  # Requests that last for the time of 40 others.
  class Traffic
    def initialize = @requests = []

    def call(number)
      @requests << ("request #{number} " * 200)
      @requests.shift if @requests.size > 40
    end
  end

  # 300 connections, one of which is replaced by each request.
  class Pool
    def initialize = @connections = Array.new(300) { |number| "connection #{number} " * 100 }
    def call(number) = @connections[(number * 7) % 300] = "connection #{number} " * 100
  end

  # Nothing but garbage.
  class Garbage
    def call(number) = Array.new(300) { |at| "garbage #{number + at}" * 3 }
  end

  # An endpoint, as of a Rack application that has warmed up.
  class Rack
    ROUTES = { "/orders" => ->(env) { [200, { "content-type" => "application/json" }, [JSON.generate(env)]] } }.freeze
    def initialize = 50.times { |number| call(number) }
    def call(number) = ROUTES["/orders"].call({ "PATH_INFO" => "/orders", "QUERY_STRING" => "id=#{number}" }).last.join.size
  end

  # Enumerators that have begun, each with a stack of its own.
  class Stacks
    STARTED = [] # rubocop:disable Style/MutableConstant
    def call(_number) = STARTED << [1, 2, 3].each.tap(&:next)
  end
end

program = Programs.const_get(ARGV.fetch(0).capitalize).new
$stdout.puts "up"
$stdout.flush
number = 0
loop do
  program.call(number += 1)
  JSON.parse(JSON.generate({ "number" => number, "tags" => Array.new(10) { |at| "tag #{at}" } }))
  sleep 0.002
end
