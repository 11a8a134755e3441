# frozen_string_literal: true

require_relative "target_helper"

# What mappings are used for: stacks of threads, of fibers and of threads that have ended; JIT, libraries, files.
class ScopeNamesTest < Minitest::Test
  include TargetHelper

  def test_a_mapping_of_every_kind
    with_target("mappings") do |program|
      with_frozen(program, __FILE__) do |pid, lines, _|
        snapshot = read(pid)
        at = lines.map(&:split).select { |words| words.size == 2 }.to_h { |name, address| [name, mapping_at(snapshot, address.to_i)] }
        told = at.transform_values { |mapping| mapping.to_h.values_at("use", "label") }
        assert_equal ["stack", "main thread"], told["stack"]
        tids = Dir["/proc/#{pid}/task/*"].to_h { |folder| [File.read("#{folder}/comm").chomp, File.basename(folder)] }
        %w[first second].each { |name| assert_equal ["stack", "thread #{name} (#{tids.fetch(name)})"], told[name] }
        assert_equal %w[library mappings], told["code"]
        assert_equal ["library", "mappings, zero-initialised data"], told["zeroes"]
        assert_equal ["jit", "executable memory"], told["jit"]
        assert_equal ["file", File.basename(__FILE__)], told["file"]
        assert_equal ["file", "shared memory: /memfd:some memory (deleted)"], told["memory"]
        assert_equal ["file", "shared memory: /dev/zero (deleted)"], told["shared"]
        assert_equal "other", told["reserved"].first
        assert_equal %w[kernel kernel], named(snapshot, "path", /\A\[v(dso|var)\]/).map { |each| each["use"] }
        assert_equal "library", named(snapshot, "path", %r{/libc\.so\.6\z}).map { |each| each["use"] }.uniq.join
      end
    end
  end

  FIBERS = 40
  RUBY = <<~RUBY.freeze
    sleepers = Array.new(6) { |i| Thread.new { Thread.current.name = "worker-\#{i}"; sleep } }
    fibers = Array.new(#{FIBERS}) { Fiber.new { Fiber.yield }.tap(&:resume) }
    sleepers << Thread.new { Thread.current.name = "fibrous"; Fiber.new { sleep }.resume }
    Array.new(5) { Thread.new { sleep 0.05 } }.each(&:join)
    sleep 0.01 until sleepers.all? { |thread| thread.status == "sleep" }
    puts "end"; $stdout.flush
    Fiber.new { Process.kill(:STOP, $$) }.resume
  RUBY

  # The control blocks that tell a thread's own stack are where x86-64 has them.
  def test_fibers_and_threads_of_ruby
    %w[glibc culet jemalloc].each do |allocator|
      with_frozen(RbConfig.ruby, "-e", RUBY, env: on(allocator)) do |pid, _, _|
        snapshot = read(pid)
        labels = named(snapshot, "use", /\Astack\z/).map { |each| each["label"] }
        6.times { |i| assert_equal 1, labels.grep(/\Athread worker-#{i} \(\d+\)\z/).size, labels.inspect }
        fibers = named(snapshot, "use", /\Afiber\z/).reject { |each| each["label"] == "guard" }
        assert_operator fibers.size, :>=, FIBERS, allocator
        assert_equal 1, fibers.map { |each| each["end"] - each["start"] }.uniq.size
        next unless RbConfig::CONFIG["host_cpu"] == "x86_64"

        assert_includes fibers.map { |each| each["label"] }, "fiber, main thread in it"
        assert_equal 1, fibers.map { |each| each["label"] }.grep(/\Afiber, thread fibrous/).size
      end
    end
  end

  # Stacks that glibc keeps for the next threads.
  def test_stacks_of_threads_that_have_ended
    script = "#{"Thread.new { sleep }; " * 2}; Array.new(6) { Thread.new { sleep 0.1 } }.each(&:join); puts 'end'; $stdout.flush; sleep"
    with_talker(RbConfig.ruby, "-e", script) do |pid, _, _|
      sleep 0.2
      snapshot = read(pid)
      stacks = named(snapshot, "use", /\Astack\z/).reject { |each| each["label"] == "guard" }
      assert_operator stacks.size, :>=, Dir["/proc/#{pid}/task/*"].size
      others = named(snapshot, "use", /\Aother\z/).sum { |each| each["rss_bytes"] }
      assert_operator others, :<, 1 << 20
    end
  end

  # Where the memory of a process cannot be read its mappings are named all the same.
  def test_every_mapping_has_a_use
    uses = %w[malloc ruby stack fiber jit library file allocator kernel other]
    with_talker("sh", "-c", "echo end; read x < /dev/zero") do |pid, _, _|
      mappings = read(pid).mappings
      refute_empty mappings
      mappings.each { |mapping| assert_includes uses, mapping.to_h["use"] }
    end
  end

  # Names are data: whatever a thread calls itself.
  def test_a_thread_with_a_strange_name
    name = %(<b>"\\\xFF)
    script = "Thread.new { File.binwrite('/proc/thread-self/comm', #{name.b.dump}); puts 'end'; $stdout.flush; sleep }.join"
    with_talker(RbConfig.ruby, "-e", script) do |pid, _, _|
      shown = name.dup.force_encoding("UTF-8").scrub("\u{FFFD}")
      assert(read(pid).mappings.any? { |mapping| mapping.to_h["label"].to_s.start_with?("thread #{shown} (") })
    end
  end

  private

  def mapping_at(snapshot, address) = snapshot.mappings.find { |mapping| mapping.start <= address && address < mapping.end }

  def named(snapshot, key, pattern) = snapshot.mappings.map(&:to_h).select { |each| each[key].match?(pattern) }
end
