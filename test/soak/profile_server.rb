# frozen_string_literal: true

# A server for the soak of the memory profile: Puma, whose requests name a kind of work and a number. All kinds give the
# same answer, each in a way of its own: by threads, fibers, children, code that comes and goes. Meanwhile the heap is
# compacted every second, and GC.stress is on for a moment.
#
# PORT is the TCP port of 127.0.0.1; SOAK_RACTORS=1 is for Ractors: without compactions and GC.stress; SIGTERM ends it.

require "fiddle"
require "json"
require "open3"
require "puma"
require "puma/configuration"
require "puma/launcher"
require "rack/utils"
require "rbconfig"
require "tempfile"
require "timeout"
require "weakref"
require_relative "profile_work"

# The kinds of work: each returns Soak::ProfileWork.answer(number).
class Work
  include Soak::ProfileWork

  # Malloc and free of C, as a library that is called through Fiddle.
  MALLOC = Fiddle::Function.new(Fiddle::Handle::DEFAULT["malloc"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_VOIDP)
  FREE = Fiddle::Function.new(Fiddle::Handle::DEFAULT["free"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
  RACTORS = Mutex.new

  def strings(number)
    out = +""
    text(number).each_line { |line| out << line }
    out << JSON.generate(records(number))
    digest(out)
  end

  def documents(number) = digest(text(number) + JSON.generate(JSON.parse(JSON.generate(records(number)))))

  def arrays(number)
    Array.new(200) { |i| Array.new(i) { |j| j * number } }.flatten.sum
    answer(number)
  end

  def fibers(number)
    parts = [-> { text(number) }, -> { JSON.generate(records(number)) }]
    fibers = Array.new(20) { |i| Fiber.new { Fiber.yield("f" * i) && parts[i % 2].call } }
    fibers.each(&:resume)
    digest(fibers.map { |fiber| fiber.resume(true) }.first(2).join)
  end

  # Each enumerator's `next` runs in a fiber of its own; those that are not exhausted are collected.
  def enumerators(number)
    lines = text(number).each_line.lazy.map(&:itself).each_entry
    out = +""
    loop { out << lines.next }
    Array.new(10) { |i| [i, number].cycle.tap(&:next) }
    digest(out + JSON.generate(records(number)))
  end

  def timeouts(number)
    Timeout.timeout(0.01) { loop { "t" * 1000 } }
  rescue Timeout::Error
    answer(number)
  end

  def threads(number)
    Array.new(4) { Thread.new { loop { "k" * 500 } } }.each { |thread| thread.kill && thread.join }
    Array.new(4) { Thread.new { answer(number) } }.map(&:value).uniq.join
  end

  def evaluated(number)
    binding.eval("Soak::ProfileWork.answer(number)", "page#{number % 50}.erb", 7)
  end

  def defined(number)
    name = :"work_#{number % 1000}_#{Thread.current.object_id}"
    self.class.define_method(name) { answer(number) }
    send(name)
  ensure
    self.class.send(:remove_method, name)
  end

  # Classes and code that nothing refers to any more.
  def unloaded(number)
    code = RubyVM::InstructionSequence.compile("Class.new { def call(number) = Soak::ProfileWork.answer(number) }", "gone#{number % 50}.rb")
    code.eval.new.call(number)
  end

  def exceptions(number)
    catch(:found) do
      Array.new(20) { |i| i.zero? ? raise("e" * 300) : i }
    rescue RuntimeError => e
      e.full_message
      throw(:found, answer(number))
    end
  end

  def recursion(number)
    deeper = ->(depth) { "#{depth} deep".then { deeper.call(depth + 1) } }
    deeper.call(0)
  rescue SystemStackError
    answer(number)
  end

  def labels(number)
    return answer(number) unless defined?(Culet::Profile)

    Culet::Profile.label(endpoint: "work #{number % 100}") do
      Fiber.new { Culet::Profile.label(part: "fiber") { answer(number) } }.resume
    end
  end

  def signals(number)
    3.times { Process.kill(:WINCH, Process.pid) }
    answer(number)
  end

  def weak(number)
    objects = Array.new(50) { |i| "weak #{i * number}" }
    map = ObjectSpace::WeakMap.new
    objects.each { |object| map[object] = object }
    ObjectSpace.define_finalizer(objects.first, self.class.finalizer)
    WeakRef.new(objects.last)
    answer(number)
  end

  def self.finalizer = proc { "finalized" * 20 }

  def fiddle(number)
    blocks = Array.new(20) { |i| MALLOC.call(100 << (i % 12)) }
    answer(number)
  ensure
    blocks.each { |block| FREE.call(block) }
  end

  # Ruby starts these by vfork.
  def spawned(number)
    out, status = Open3.capture2("/bin/cat", stdin_data: answer(number))
    ended(status)
    out
  end

  def child_exits(number) = child(number) { exit }
  def child_leaves(number) = child(number) { exit!(0) }
  def child_executes(number) = child(number) { exec("/bin/true") }

  # One thread at a time: up to Ruby 3.4 threads that wait for Ractors get each other's values.
  def ractors(number)
    RACTORS.synchronize do
      ractors = Array.new(3) { Ractor.new(number) { |one| Soak::ProfileWork.answer(one) } }
      ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }.uniq.join
    end
  end

  private

  # Work in a child that goes on with the profile, and writes it.
  def child(number)
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.write(answer(number))
      writer.close
      Tempfile.create("soak") { |file| Culet::Profile.write(file.path) } if defined?(Culet::Profile) && number.even?
      GC.start
      yield
    end
    writer.close
    out = reader.read
    ended(Process.wait2(pid).last)
    out
  ensure
    reader&.close
  end

  def ended(status)
    raise "a child ended with #{status}" unless status.success?
  end
end

# GET /KIND/NUMBER, and what controls the server: /stop, /start/BYTES
class Application
  KINDS = [false, true].flat_map { |ractors| Soak::ProfileWork.mix(ractors: ractors) }.uniq.freeze

  def initialize
    @work = Work.new
  end

  def call(environment)
    _, kind, number = environment["PATH_INFO"].split("/")
    answer(200, dispatch(kind.to_s.to_sym, number.to_i))
  rescue StandardError => e
    warn("soak server: #{kind} #{number}: #{e.full_message(highlight: false)}")
    answer(500, "#{e.class}: #{e.message}")
  end

  private

  def answer(status, body) = [status, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]

  def dispatch(kind, number)
    return @work.public_send(kind, number) if KINDS.include?(kind)

    case kind
    when :start then Culet::Profile.start(sample_bytes: number)
    when :stop then Culet::Profile.stop
    else return "ready"
    end
    "done"
  end
end

# What happens beside the requests.
module Disturbances
  COMPACT_SECONDS = 1
  STRESS_SECONDS = 30
  STRESSED = 2 # allocations, during which all threads run slowly

  def self.start(ractors:)
    Thread.new { repeat(COMPACT_SECONDS) { GC.compact } } unless ractors
    Thread.new { repeat(STRESS_SECONDS) { stress } } unless ractors
    Thread.new { repeat(1) { GC.start } }
    trap(:WINCH) { Array.new(20) { |i| "signal #{i}" * i } }
  end

  def self.repeat(seconds)
    loop do
      sleep(seconds)
      yield
    end
  end

  def self.stress
    GC.stress = true
    STRESSED.times { |i| "stress #{i}" }
  ensure
    GC.stress = false
  end
end

Disturbances.start(ractors: ENV["SOAK_RACTORS"] == "1")
configuration = Puma::Configuration.new do |settings|
  settings.bind("tcp://127.0.0.1:#{Integer(ENV.fetch("PORT"))}")
  settings.threads(6, 6)
  settings.workers(0)
  settings.app(Application.new)
end
# Errors only: what Puma answers with 400 or 500 by itself shows up nowhere else.
Puma::Launcher.new(configuration, log_writer: Puma::LogWriter.new(File.open(File::NULL, "w"), $stderr)).run
