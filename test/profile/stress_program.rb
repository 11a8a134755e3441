# frozen_string_literal: true

require "json"
require "timeout"

# Everything at once that a profile must survive, for some seconds: threads, fibers, forks, compaction, GC.stress, evaluated
# and removed code, signals, exceptions through labels, and readings of the profile meanwhile.
class StressProgram
  PARTS = %i[strings documents compact fibers timeouts forks evaluated readings labels restarts threads stress signals].freeze

  def initialize(seconds, path)
    @stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    @path = path
    @kept = []
    @problems = Queue.new
  end

  def call
    trap("USR1") { 50.times { "signal" * 100 } }
    PARTS.map { |name| thread(name) }.each(&:join)
    GC.stress = false
    50.times { @kept << ("k" * 500_000) } # the profile may have been restarted just now
    Culet::Profile.write(@path)
    puts @problems.pop until @problems.empty?
    puts "done"
  end

  private

  def over? = Process.clock_gettime(Process::CLOCK_MONOTONIC) > @stop

  def thread(name)
    Thread.new do
      # Each at least once, also where a thread first runs when the time is over.
      loop do
        send(name)
        break if over?
      end
    rescue Exception => e # rubocop:disable Lint/RescueException -- whatever it is, it is a finding
      @problems << "#{name}: #{e.class}: #{e.message}"
    end
  end

  def strings
    @kept << Array.new(500) { |index| "string #{index}" * rand(50) }.sample
    @kept.shift if @kept.size > 2000
    Thread.pass
  end

  def documents = JSON.generate(Array.new(300) { |index| { "key #{index}" => [index] * rand(20) } })

  def compact
    GC.compact
    sleep 0.05
  end

  def fibers
    list = Array.new(20) { Fiber.new { Fiber.yield("f" * rand(2000)) || Array.new(5) { "g" * 500 } } }
    list.each(&:resume)
    list.first(10).each(&:resume)
  end

  def timeouts
    Timeout.timeout(0.005) { loop { "t" * 1000 } }
  rescue Timeout::Error
    nil
  end

  def forks
    pid = fork do
      1000.times { "c" * rand(3000) }
      Culet::Profile.write("#{@path}.child")
      exit!(0)
    end
    Process.wait(pid)
    raise "the child ended with #{$?}" unless $?.success?

    sleep 0.05
  end

  def evaluated
    name = "evaluated_#{rand(1000)}"
    Object.class_eval("def #{name} = 'e' * 300", __FILE__, __LINE__) # def evaluated_12 = 'e' * 300
    send(name)
    Object.send(:remove_method, name)
  end

  def readings
    Culet::Profile.write(@path)
    sleep 0.1
  end

  def labels
    Culet::Profile.label(endpoint: "endpoint #{rand(50)}") do
      Array.new(50) { "l" * rand(400) }
      raise ArgumentError if rand < 0.1
    end
  rescue ArgumentError
    nil
  end

  def restarts
    sleep 0.4
    Culet::Profile.stop
    Culet::Profile.start(sample_bytes: [512, 4096, 65_536].sample)
  end

  def threads = Array.new(5) { Thread.new { 100.times { "q" * 300 } } }.each { |one| rand < 0.2 ? one.kill : one.join }

  def stress
    GC.stress = true
    10.times { "z" * 50 }
    GC.stress = false
    sleep 0.3
  end

  def signals
    Process.kill("USR1", Process.pid)
    sleep 0.01
  end
end

StressProgram.new(Float(ARGV.fetch(0)), ARGV.fetch(1)).call
