# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "etc"

# Memory that a Ruby process has freed goes back while it does nothing, in a forked worker too.
class IdleTest < Minitest::Test
  MEGABYTE = 1_000_000

  # 150 MB in four threads that stay alive; then nothing is asked of malloc any more. `rest` reads its own line of
  # numbers as seldom as it can: what it allocates for that is little, but it is not nothing.
  BURST = <<~RUBY.freeze
    def resident = File.read("/proc/self/statm").split[1].to_i * #{Etc.sysconf(Etc::SC_PAGESIZE)}

    def burst
      done = Queue.new
      threads = Array.new(4) do
        Thread.new do
          Thread.current[:kept] = Array.new(50_000) { |i| "x" * (#{LONG_STRING_BYTES} + i % 200) }
          done << true
          sleep
        end
      end
      4.times { done.pop }
      before = resident
      threads.each { |thread| thread[:kept].select!.with_index { |_, i| (i % 500).zero? } }
      GC.start
      threads.each(&:kill).each(&:join)
      before
    end
  RUBY

  def test_a_process
    assert_returned(<<~RUBY)
      #{BURST}
      before = burst
      sleep 0.1 until resident < before - 60_000_000 || (waited = waited.to_i + 1) > 600
      puts before, resident
    RUBY
  end

  def test_a_forked_worker
    assert_returned(<<~RUBY)
      #{BURST}
      burst
      Process.wait(fork do
        before = burst
        sleep 0.1 until resident < before - 60_000_000 || (waited = waited.to_i + 1) > 600
        puts before, resident
      end)
    RUBY
  end

  # Small processes do not get the thread. It gives itself its name.
  def test_a_small_process_has_no_thread_of_the_allocators
    threads = "Dir['/proc/self/task/*/comm'].map { |file| File.read(file).chomp }.count('culet')"
    assert_equal "0\n", ruby("puts #{threads}")
    assert_equal "1\n", ruby("kept = Array.new(30_000) { 'x' * 1000 }; 600.times { #{threads}.zero? ? sleep(0.1) : break }; puts #{threads}; kept")
  end

  private

  def assert_returned(script)
    before, after = ruby(script).split.map { |bytes| bytes.to_i / MEGABYTE }
    assert_operator before, :>, 100, "the burst was too small to tell"
    assert_operator after, :<=, before - 60, "#{before} MB after the burst, #{after} MB a minute later"
  end

  def ruby(script)
    env = NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))
    out, err = assert_success(RbConfig.ruby, "--disable-gems", "-e", script, env: env)
    assert_empty err
    out
  end
end
