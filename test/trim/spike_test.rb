# frozen_string_literal: true

require "trim/trim_helper"

# What is resident at the end, beside the least that could be done: test/trim/spike. Minutes, so with bin/test --all alone.
class TrimSpikeTest < Minitest::Test
  include TrimHelper

  RUNS = 3
  MOST = 1.15
  SLACK_BYTES = 4_000_000 # a few arenas' last pages
  AT_THE_END = <<~RUBY
    at_exit do
      GC.start
      sleep 2
      $stderr.puts Integer(File.read("/proc/self/statm").split[1], 10) * 4096
    end
  RUBY

  %w[threads window fragments].each do |workload|
    define_method(:"test_#{workload}") do
      skip "slow: bin/test --all" unless all_tests?

      Dir.mktmpdir do |directory|
        build(directory)
        pairs = Array.new(RUNS) do
          [["-I#{directory}", "-rspike"], ["-I#{TestHelper::ROOT}/lib", "-rculet/auto"]].map { |flags| resident_at_end(directory, flags, workload) }
        end
        spike, ours = pairs.transpose.map { |figures| figures.sort[RUNS / 2] }
        assert_operator ours, :<=, (spike * MOST) + SLACK_BYTES, pairs.inspect
      end
    end
  end

  private

  def build(directory)
    File.write(File.join(directory, "at_end.rb"), AT_THE_END)
    [[RbConfig.ruby, "#{TestHelper::ROOT}/test/trim/spike/extconf.rb"], ["make"]].each do |command|
      assert_success(*command, chdir: directory)
    end
  end

  def resident_at_end(directory, flags, workload)
    _, err = assert_success(RbConfig.ruby, "-r#{directory}/at_end.rb", *flags, "#{TestHelper::ROOT}/workloads/#{workload}.rb", env: TestHelper::NEUTRAL)
    Integer(err.lines.last, 10)
  end
end
