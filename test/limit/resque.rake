# frozen_string_literal: true

# Jobs of Resque, one line at its begin and one at its end in the file JOURNAL. BYTES: what the worker keeps of each job.
require "resque"
require "resque/tasks"
require "culet/resque"

Resque.redis = Redis.new(url: ENV.fetch("REDIS_URL"))
KEPT = [] # rubocop:disable Style/MutableConstant

# A job.
class LineJob
  extend Culet::Resque

  @queue = :lines

  def self.perform(number)
    write("begin #{number}")
    KEPT << ("x" * Integer(ENV.fetch("BYTES"))) if ENV["FORK_PER_JOB"] == "false"
    sleep 0.02
    write("end #{number}")
  end

  def self.write(line) = File.write(ENV.fetch("JOURNAL"), "#{line}\n", mode: "a")
end

# A job that needs nearly the whole limit.
class LargeJob < LineJob
  @queue = :lines

  def self.perform(number)
    write("begin #{number}")
    kept = []
    kept << ("x" * 1_000_000) while used < 0.95
    sleep 4
    write("end #{number}")
  end

  def self.used = Culet::Limit.status.values_at("used_bytes", "limit_bytes").inject(:fdiv)
end

Resque.before_fork { KEPT << ("x" * Integer(ENV.fetch("BYTES"))) }

task :enqueue do
  Integer(ENV.fetch("JOBS")).times { |number| Resque.enqueue(Object.const_get(ENV.fetch("JOB", "LineJob")), number) }
end
