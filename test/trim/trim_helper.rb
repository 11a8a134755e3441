# frozen_string_literal: true

require "test_helper"
require "culet/allocators"
require "json"

# Real Ruby processes with culet/auto.
module TrimHelper
  # What every script here may use.
  PRELUDE = <<~RUBY
    require "culet"
    require "json"

    def resident = Integer(File.read("/proc/self/statm").split[1], 10) * 4096
    def tell(data) = puts(JSON.generate(data))

    # How many native threads are culet's: Ruby may have some of its own.
    def own_threads = Dir["/proc/self/task/*/comm"].count { |file| File.read(file).start_with?("culet") }

    # Waits until the block is true, and says whether it came to be.
    def wait_until(seconds = 100)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      until (true_now = yield)
        return false if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

        sleep 0.02
      end
      true_now
    end

    # So many MB of strings of 1,000 bytes, all garbage but uncollected.
    def litter(megabytes)
      GC.disable
      megabytes.times { Array.new(1_000) { "x" * 1_000 } }
      GC.enable
    end
  RUBY

  # Runs a script with culet/auto (without: auto: false) and gives back what it told. It must end well and say nothing else.
  #
  # @param setting [String, nil] CULET_TRIM
  # @param env [Hash] besides
  # @param ruby [String] which Ruby
  # @param lib [String] what is on its load path, built for it
  # @return [Array] what it told, in order
  def run_trimmed(script, *flags, auto: true, setting: nil, env: {}, warnings: true, ruby: RbConfig.ruby, lib: "#{ROOT}/lib")
    env = NEUTRAL_TRIM.merge(env).merge("CULET_TRIM" => setting)
    out, err, status = run_program(ruby, *("-w" if warnings), "-I#{lib}", *flags, *("-rculet/auto" if auto), "-e", PRELUDE + script, env: env)
    assert_predicate status, :success?, "#{status}: #{err}\n#{out}"
    assert_empty err
    out.lines.map { |line| JSON.parse(line, symbolize_names: true) }
  end

  NEUTRAL_TRIM = TestHelper::NEUTRAL.merge("CULET_TRIM" => nil).freeze
  ROOT = TestHelper::ROOT
  private_constant :NEUTRAL_TRIM, :ROOT

  def under(allocator) = Culet::Allocators.parse(allocator).environment({})
end
