# frozen_string_literal: true

require "profile/profile_helper"
require "culet/allocators"
require "culet/tools/profile"

# Forked processes go on with the profile, each with a stream of its own.
class ProfileForkTest < Minitest::Test
  include ProfileHelper

  def test_each_process_writes_its_own
    streams(<<~RUBY) do |parent, children|
      $inherited = "x" * 50_001
      pids = Array.new(3) { |index| fork { def child(index) = ($own = "x" * (60_001 + index)); child(index) } }
      pids.each { |pid| Process.wait(pid) }
      $after = "x" * 70_001
    RUBY
      assert_equal 3, children.size
      assert_equal ["program.rb:1:<main>", "program.rb:4:<main>"], [parent.ruby(50_002)[1], parent.ruby(70_002)[1]]
      assert_empty(parent.sites.select { |sums, _| sums.key?("i") })
      assert_equal %w[0 1 1 1], [parent, *children].map { |stream| stream.fields("P").first.split[5] }
      children.each do |child|
        inherited = child.sites.find { |sums, _| sums.dig("i", 1) == 50_002 }
        assert_equal "program.rb:1:<main>", inherited.last.grep_v(Integer)[1].to_s
      end
      own = children.flat_map { |child| child.sites.select { |_, words| words.map(&:to_s).include?("program.rb:2:Object#child") } }
      assert_equal [60_002.0, 60_003.0, 60_004.0], own.map { |sums, _| sums["a"][1] }.sort
    end
  end

  # Bytes by line, of the processes that are named: what was allocated before the fork counts once.
  def test_what_several_processes_have_counts_once
    found = recordings(<<~RUBY)
      $before = Array.new(500) { "x" * 20_000 }
      pids = Array.new(2) do |index|
        fork do
          $own = Array.new(250) { "y" * 20_000 }
          # Another half in each of them.
          $before.each_index { |at| $before[at] = nil if at % 2 == index }
          4.times { GC.start }
        end
      end
      pids.each { |pid| Process.wait(pid) }
      GC.start
    RUBY
    master, *workers = found.sort_by(&:generation)
    assert_equal 2, workers.size
    { [workers[0]] => [5, 5], workers => [10, 10], [workers[1], master] => [10, 5], [*workers, master] => [10, 10], [master] => [10, 0] }.each do |named, expected|
      data = Culet::Profile::Data.new(named)
      lines = %w[1 4].map { |line| malloc_bytes(data, line) }
      # A block is some 5 % larger than what was requested.
      expected.zip(lines) { |megabytes, bytes| assert_in_delta megabytes * 1_050_000, bytes, 600_000, named.map(&:pid) }
      # What was inherited is no growth of a worker.
      refute_includes data.by(:growth, :line).map { |row| File.basename(row.name) }, "program.rb:1" unless named.include?(master)
      # And nothing that it allocated.
      assert_equal named.include?(master), data.by(:allocated, :line).any? { |row| row.name.end_with?("program.rb:1") }
    end
  end

  def test_grandchildren_and_forks_beside_threads
    streams(<<~RUBY, every: 11) do |_, children|
      threads = Array.new(3) { Thread.new { loop { Array.new(50) { |index| "n\#{index}" * 20 }; sleep 0.0001 } } }
      30.times { Process.wait(fork { Process.wait(fork { $own = "x" * 50_001 }) }) }
      threads.each(&:kill)
    RUBY
      assert_equal 60, children.size
      assert_equal 30, children.count { |stream| stream.fields("P").first.split[5] == "2" }
      assert_equal(30, children.sum { |stream| stream.sites.count { |sums, _| sums.dig("a", 1) == 50_002 } })
    end
  end

  # In the child the thread has another number, and the profile's handlers have not run yet.
  def test_another_library_allocates_in_its_fork_handler
    out = inside(<<~RUBY, env: { "SAMPLER_FORK" => "1" })
      Culet::Profile.start(sample_bytes: 1)
      $kept = "x" * 60_001
      pid = fork { print Culet::Profile.send(:stream) }
      exit!(1) unless Process.wait2(pid)[1].success?
    RUBY
    child = Stream.new(out)
    assert_equal %w[signal], child.ruby(50_000)
    assert_equal ["<cfunc>:0:String#*", "program.rb:2:<main>"], child.ruby(60_002)
  end

  # Without %p the name says which process a file is from.
  def test_names_of_files
    in_folder("Process.wait(fork { puts Process.pid; $stdout.flush })") do |folder, program|
      out, = run_program(*RUBY, program, env: sampled("CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => "#{folder}/stream"))
      assert_equal ["program.rb", "stream", "stream.#{out.to_i}"], Dir.children(folder).sort
      FileUtils.mkdir("#{folder}/all")
      _, _, status = run_program(*RUBY, program, env: sampled("CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => "#{folder}/all"))
      assert_equal [true, 2], [Dir.children("#{folder}/all").include?(status.pid.to_s), Dir.children("#{folder}/all").size]
    end
  end

  private

  # Without objects, which are sampled for a short time now and then: one array that is stands for hundreds, all with its
  # buffer.
  def malloc_bytes(data, line)
    data.sites(:live).select { |site| site.kind == :malloc && site.place.end_with?("program.rb:#{line}") }.sum(&:bytes)
  end

  # @return [Array<Culet::Profile::Recording>] of the processes of a program on culet's allocator
  def recordings(script)
    in_folder(script) do |folder, program|
      FileUtils.mkdir("#{folder}/all")
      env = TestHelper::NEUTRAL.merge(Culet::Allocators.parse("culet").environment({}))
                               .merge("CULET_PROFILE" => "4k", "CULET_PROFILE_OUT" => "#{folder}/all/%p")
      _, err, status = run_program(*RUBY, program, env: env)
      assert_equal [true, ""], [status.success?, err]
      Dir["#{folder}/all/*"].map { |path| Culet::Profile::Stream.load(path).recording }
    end
  end

  # @yieldparam parent [Stream]
  # @yieldparam children [Array<Stream>]
  def streams(script, every: 0)
    in_folder(script) do |folder, program|
      FileUtils.mkdir("#{folder}/all")
      out, err, status = run_program(*RUBY, program, env: sampled(every: every, "CULET_PROFILE" => "1", "CULET_PROFILE_OUT" => "#{folder}/all/%p"))
      assert_equal [true, "", ""], [status.success?, err, out]
      files = Dir.children("#{folder}/all").sort_by(&:to_i)
      found = files.to_h { |name| [name.to_i, Stream.new(File.read("#{folder}/all/#{name}"))] }
      yield found.delete(status.pid), found.values
    end
  end
end
