# frozen_string_literal: true

require_relative "box_helper"
require_relative "cgroup_helper"

# Processes that the kernel kills at the limit of a real control group: each autopsy names the kernel, the planted site
# with at least 90 % of its bytes, and the requests.
class AutopsyOomTest < Minitest::Test
  include TestHelper
  include BoxHelper
  include CgroupHelper

  KILLS = ENV.key?("CULET_TEST_ALL") ? 100 : 3
  LIMIT_BYTES = 96 << 20
  # A quarter of the memory is other code's. The pauses are those of a server: none, long and short ones. In the plain run
  # it waits now and then for a record of the profile, which a thread writes that is late on a busy machine.
  SERVER = <<~RUBY
    require "culet/profile"
    kind, pause, record, paced = ARGV
    kept = []
    count = 0
    truth = File.open(record, "w")
    other = -> { kept << ("o" * 1000) }
    planted = { "strings" => -> { kept << ("x" * 3000) }, "large" => -> { kept << ("y" * 60_000) },
                "small" => -> { kept << ("z" * 200) } }
    sizes = { "strings" => 3000, "large" => 60_000, "small" => 200 }
    # With the zero byte, the object and its place in the array.
    size = sizes.fetch(kind) + 1 + 40 + 8
    20_000.times { other.call }
    100.times { |number| Culet::Profile.label(endpoint: "GET /orders/\#{number % 3}") { "a" * 100 } }
    Culet::Profile.label(endpoint: "GET /leak") do
      recorded = 0
      (1..).each do |round|
        (300_000 / size).times { planted.fetch(kind).call; count += size }
        truth.pwrite([count].pack("Q"), 0)
        if paced && round % 5 == 0
          sleep 0.002 while Culet::BlackBox.stats[:profiles] == recorded
          recorded = Culet::BlackBox.stats[:profiles]
        end
        sleep Float(pause)
      end
    end
  RUBY
  LINES = { "strings" => 7, "large" => 7, "small" => 8 }.freeze

  def test_the_kernels_kills
    KILLS.times do |number|
      kind = LINES.keys[number % LINES.size]
      pause = [0, 0.002, 0.02][number / 2 % 3]
      with_cgroup(LIMIT_BYTES) { |group| check(kill(group, kind, pause), kind) }
      FileUtils.rm(boxes)
    end
  end

  private

  # @return [Integer] bytes that the planted site had allocated
  def kill(group, kind, pause)
    program = File.join(@folder, "server.rb")
    record = File.join(@folder, "truth")
    File.write(program, SERVER)
    _, err, status = run_program(*in_cgroup(group, RbConfig.ruby, "-I#{LIBRARY}", "-rculet/auto", program, kind, pause, record, *("paced" unless all_tests?)),
                                 env: { "CULET_BLACKBOX" => @folder, "CULET_PROFILE" => "16k", "LD_PRELOAD" => MALLOC })
    assert_equal "KILL", Signal.signame(status.termsig.to_i), err
    File.binread(record).unpack1("Q")
  end

  def check(truth, kind)
    report = autopsy(@folder)
    assert_equal "kernel", report["cause"]["kind"], report["cause"]["text"]
    line = report["profile"]["lines"].find { |row| row["name"].end_with?("server.rb:#{LINES.fetch(kind)}") } ||
           flunk("#{kind}, #{truth} bytes: the site is not among #{report["profile"]}")
    assert_operator line["bytes"], :>=, 0.9 * truth, "#{kind}: #{report["profile"]["lines"].first(3)}"
    # The array of the small ones doubles, and is there twice while it moves.
    assert_operator line["bytes"], :<=, 1.4 * truth
    assert_equal line, report["profile"]["lines"].first
    assert_equal ["endpoint=GET /leak"], report["running"].map { |one| one["label"] }
    assert_equal 100, report["finished"].size
    assert_operator report["used_bytes"], :>, 0.75 * LIMIT_BYTES
    assert_equal LIMIT_BYTES, report["limit_bytes"]
  end
end
