# frozen_string_literal: true

require_relative "../scope/scope_helper"

# What a report says that malloc_trim would give back, against what it then gives back.
class ReportTrimTest < Minitest::Test
  include ScopeHelper

  TOLERANCE = 0.02

  # Fills and frees in eight threads, says so, and trims when it is told to.
  SCATTERED = <<~RUBY
    done = Queue.new
    threads = Array.new(8) do |n|
      Thread.new do
        random = Random.new(n)
        kept = Array.new(20_000) { "x" * (100 + random.rand(2_000)) }
        Thread.current[:kept] = kept.each_with_index.select { |_, i| KEEP }.map(&:first)
        kept = nil
        done << true
        sleep
      end
    end
    8.times { done.pop }
    3.times { GC.start }
    GC.disable
    puts :up; $stdout.flush
    $stdin.gets
    Culet.trim
    puts :trimmed; $stdout.flush
    sleep
  RUBY

  # One block in KEEP survives: the more apart they lie, the more pages are free.
  ["(i % 9).zero?", "(i / 2000).even?", "i % 100 == 7"].each_with_index do |keep, index|
    define_method("test_a_ruby_process_#{index}") do
      assert_predicted([RbConfig.ruby, "--disable-gems", "-I#{ROOT}/lib", "-rculet", "-e", SCATTERED.sub("KEEP", keep)])
    end
  end

  private

  def assert_predicted(command)
    with_fed(*command, env: NEUTRAL) do |pid, output, feed|
      assert_equal "up\n", output.gets
      predicted = json("report", pid.to_s).fetch("trim_bytes")
      before = resident(pid)
      feed.puts
      assert_equal "trimmed\n", output.gets
      returned = before - resident(pid)
      assert_operator returned, :>, 5_000_000
      assert_in_delta returned, predicted, returned * TOLERANCE
    end
  end

  def resident(pid) = Culet::Processes::Memory.rollup(pid).fetch("rss_bytes")
end
