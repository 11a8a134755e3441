# frozen_string_literal: true

require "limit/limit_helper"
require "json"

# What a parent and its workers use, as the limit says between two walks of their page tables, against the kernel's PSS
# at the same moments.
class LimitClusterTest < Minitest::Test
  include LimitHelper

  # A forking server's memory without the server: workers that copy a part of what they inherit, allocate, free, map a
  # file that all have, and rest. Writes a line for each moment: the limit's figure before and after it, PSS and
  # resident bytes of all.
  # WORKERS, SECONDS.
  PROGRAM = <<~'RUBY'
    require "culet/limit"
    require "culet/runtime/limit/puma"
    require "json"

    inherited = Array.new(60) { "x" * 1_000_000 }
    work = lambda do
      random = Random.new(Process.pid)
      kept = []
      began = Culet::Clock.now
      loop do
        age = Culet::Clock.now - began
        inherited.sample(2, random: random).each { |text| (0...500_000).step(4096) { |at| text.setbyte(at, 1) } } if age < 2
        kept << ("y" * 200_000) if kept.size < 50
        kept.shift if age > 3
        Culet.trim if age > 3 && random.rand < 0.1
        Dir.glob("#{RbConfig::CONFIG["rubyarchdir"]}/*.so").sample(1, random: random).each { |path| IO.read(path) }
        sleep 0.05
      end
    end
    workers = []
    Culet::Limit.cluster = Culet::Limit::Cluster.new { workers.dup }
    start = -> { workers << fork { trap(:TERM, "DEFAULT"); work.call } }
    Integer(ENV.fetch("WORKERS")).times { start.call }
    sizes = lambda do |file, field|
      [Process.pid, *workers].sum { |pid| File.read("/proc/#{pid}/#{file}")[/^#{field}:\s+(\d+) kB/, 1].to_i * 1024 }
    end
    moments = lambda do |seconds|
      sleep 0.6 # a process that was just forked is in the next list
      ending = Culet::Clock.now + seconds
      count = 0
      while Culet::Clock.now < ending || count < 3
        count += 1
        before = Culet::Limit.status["used_bytes"]
        pss = sizes.call("smaps_rollup", "Pss")
        after = Culet::Limit.status["used_bytes"]
        puts JSON.generate([before, after, pss, sizes.call("status", "VmRSS")])
        sleep 0.2
      end
    end
    moments.call(Float(ENV.fetch("SECONDS")))
    Process.kill(:KILL, workers.first)
    Process.wait(workers.shift)
    start.call
    moments.call(Float(ENV.fetch("SECONDS")) / 2)
    puts JSON.generate({ "status" => Culet::Limit.status })
    workers.each { |pid| Process.kill(:KILL, pid) }.each { |pid| Process.wait(pid) }
  RUBY

  def test_two_workers
    check(workers: 2, seconds: 1.6)
  end

  def test_sixteen_workers
    skip "half a minute: bin/test --all runs it" unless all_tests?
    check(workers: 16, seconds: 15)
  end

  private

  # The resident bytes of all are far above the limit, the PSS is below every level: the limit does nothing.
  def check(workers:, seconds:)
    env = NEUTRAL.merge("CULET_TRIM" => nil, "WORKERS" => workers.to_s, "SECONDS" => seconds.to_s,
                        "CULET_LIMIT" => "#{110 + (55 * workers)}M")
    out, err, status = run_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", PROGRAM, env: env)
    assert_predicate status, :success?, err
    *moments, last = out.lines.map { |line| JSON.parse(line) }
    moments.each do |before, after, pss, _|
      least, most = [before, after].minmax # the kernel takes a while for a PSS, and the workers go on meanwhile
      assert_includes (least * 0.97).to_i..(most * 1.03).to_i, pss, -> { out }
    end
    assert_operator moments.size, :>, 4
    assert_operator moments.last[3], :>, last["status"]["limit_bytes"], "they share"
    assert_equal ["", [], 0], [err, last["status"]["steps"], last["status"]["native"]["trims"]]
  end
end
