# frozen_string_literal: true

require_relative "reading_helper"
require "agent/agent_helper"

# Looks at programs that do something meanwhile: none hangs, ends, or leaves a process behind.
class RetainLooksTest < Minitest::Test
  include RetentionReadingHelper
  include AgentHelper

  # Looks in the plain run, and in all tests.
  FEW = 3
  MANY = 50
  BUSY = {
    threads: "3.times { Thread.new { list = []; loop { list << \"text \#{list.size}\"; list.clear if list.size > 5_000 } } }",
    compaction: "Thread.new { loop { GC.compact; sleep 0.01 } }; LIST = Array.new(50_000) { |number| number.to_s * 3 }; Thread.new { loop { LIST.map!(&:dup) } }",
    forks: "Thread.new { loop { Process.wait(fork { exit!(0) }) } }",
    fibers: "Thread.new { loop { Array.new(50) { Fiber.new { Fiber.yield(Object.new) } }.each(&:resume) } }",
    ractors: "2.times { Ractor.new { count = 0; loop { count += 1; \"text \#{count}\" } } }"
  }.freeze

  # The copy has the lowest priority, beside a program that is busy.
  BUSY.each do |name, code|
    define_method("test_looks_beside_#{name}") { look(code, all_tests? ? MANY : FEW) }
  end

  # The copy is no child of the program: Process.wait and SIGCHLD do not see it.
  def test_the_program_does_not_meet_the_copy
    code = "seen = 0; trap(:CHLD) { seen += 1 }; " \
           "trap(:USR1) { waited = begin; Process.waitall; rescue Errno::ECHILD; []; end; File.write(ENV.fetch(\"ANSWER\"), [seen, waited.size].inspect) }\n#{UP}"
    Dir.mktmpdir do |folder|
      answer = File.join(folder, "answer")
      with_program(*CARRYING, "-e", code, env: TestHelper::NEUTRAL.merge("ANSWER" => answer)) do |pid|
        read(pid)
        Process.kill(:USR1, pid)
        sleep 0.02 until File.size?(answer)
        assert_equal "[0, 0]", File.read(answer)
        assert_empty children(pid)
      end
    end
  end

  def test_a_limit_of_memory_ends_in_one_sentence
    with_objects("LIST = Array.new(100_000) { Object.new }\n#{UP}") do |pid|
      error = assert_raises(Culet::Error) { read(pid, limit_bytes: 1 << 20) }
      assert_match(/needs more memory than it may use\z/, error.message)
      assert_operator read(pid)["objects"], :>, 100_000
    end
  end

  # Also where a hash table cannot grow and small arrays still can.
  def test_a_dump_that_needs_more_memory_than_it_may_use
    line = ->(address, more) { %({"address":"0x#{address.to_s(16)}", "slot_size":40, "memsize":40, #{more}}\n) }
    texts = Array.new(40_000) { |number| [0x20000 + (number * 64), "text #{number}"] }
    list = texts.map { |address, _| "\"0x#{address.to_s(16)}\"" }.join(", ")
    lines = [%({"type":"ROOT", "root":"vm", "references":["0x10000"]}\n), line.call(0x10000, %("type":"ARRAY", "references":[#{list}])),
             *texts.map { |address, text| line.call(address, %("type":"STRING", "value":"#{text}")) }]
    (4_800_000..5_800_000).step(100_000) do |limit|
      error = assert_raises(Culet::Error) { read_dump(lines, duplicates: true, limit_bytes: limit) }
      assert_match(/needs more memory than it may use\z/, error.message)
    end
  end

  def test_a_limit_of_time_ends_in_one_sentence
    with_objects("LIST = Array.new(400_000) { Object.new }\n#{UP}") do |pid|
      error = assert_raises(Culet::Error) { read(pid, limit_seconds: 0.001) }
      assert_match(/did not finish in time; increase the limit\z/, error.message)
    end
  end

  def test_an_address_without_an_object
    with_objects(UP) do |pid|
      error = assert_raises(Culet::Error) { read(pid, address: 0x1238) }
      assert_match(/no object that is reachable has this address\z/, error.message)
    end
  end

  def test_bad_dumps
    { "" => /the dump has no objects/, "not json\n" => /is no dump/, "{\"a\":1}\n" => /is no dump/,
      "{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x10\"]}\n" => /has no objects/,
      "{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[]}\n{\"address\":\"0x10\", \"type\":\"OBJECT\", \"mem" => /is cut/,
      "{\"address\":\"0x10\", \"type\":\"OBJECT\", \"memsize\":40}\n" => /has no roots/,
      "{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0xzz\"]}\n" => /damaged/,
      "{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[]}\n{\"address\":\"0x10\", \"memsize\":99999999999999999999999, \"type\":\"OBJECT\"}\n" => /damaged/,
      "#{"{\"a\":" * 5_000}\n" => /is no dump/ }.each do |lines, sentence|
      error = assert_raises(Culet::Error) { read_dump([lines]) }
      assert_match sentence, error.message
      assert_equal 1, error.message.lines.size
    end
  end

  # Whatever a line holds, the walk ends with an analysis or a sentence.
  def test_damaged_dumps
    lines = Array.new(40) do |number|
      "{\"address\":\"0x#{(number * 64 + 64).to_s(16)}\", \"type\":\"#{%w[OBJECT CLASS IMEMO DATA STRING].sample(random: Random.new(number))}\", " \
        "\"class\":\"0x#{((number * 7 % 40) * 64 + 64).to_s(16)}\", \"singleton\":true, \"name\":\"N#{number}\", \"imemo_type\":\"ment\", \"struct\":\"proc\", " \
        "\"references\":[\"0x#{((number * 3 % 40) * 64 + 64).to_s(16)}\"], \"memsize\":40}\n"
    end
    text = "{\"type\":\"ROOT\", \"root\":\"vm\", \"references\":[\"0x40\", \"0x80\"]}\n#{lines.join}"
    random = Random.new(1)
    300.times do
      damaged = text.dup
      random.rand(1..4).times { damaged.setbyte(random.rand(damaged.bytesize), random.rand(256)) }
      read_dump([damaged])
    rescue Culet::Error => e
      assert_equal 1, e.message.lines.size
    end
    assert_operator read_dump([text])["objects"], :>, 0
  end

  private

  def look(code, times)
    with_objects("Warning[:experimental] = false\n#{code}\n#{UP}") do |pid|
      return if refused?(pid, code)

      times.times { assert_operator read(pid, limit_seconds: PATIENCE_SECONDS.to_f)["objects"], :>, 1_000 }
      refute_match(/\A[ZX]/, File.read("/proc/#{pid}/stat")[/\) (.)/, 1])
      assert_settles(-> { "no copy is there, as #{copies}" }) { copies.empty? }
    end
  end

  def copies = Dir.glob("/proc/[0-9]*/comm").select { |file| running(file) == "culet-retain" && own?(file) }

  def running(file)
    File.read(file).chomp
  rescue SystemCallError
    nil
  end

  # Those of other tests are left out: the folder of the agents' sockets is this run's.
  def own?(file)
    File.read(file.sub("comm", "environ")).include?("XDG_RUNTIME_DIR=#{ENV.fetch("XDG_RUNTIME_DIR")}")
  rescue SystemCallError
    false
  end
end
