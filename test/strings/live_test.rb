# frozen_string_literal: true

require "objspace"
require_relative "strings_helper"

# Running processes that carry the agent, and commands that get it.
class StringsLiveTest < Minitest::Test
  include StringsHelper

  # Strings of known number and length, none of them a literal, an interned one or a shared one.
  SCRIPT = <<~'RUBY'
    $equal = Array.new(3000) { |i| String.new("a secret text, the same in three thousand strings", capacity: 0) << "" }
    $whole = Array.new(200) { |i| ("/srv/app/releases/lib/library/concerns/number_#{i}_of_all_the_parts.rb" + "").freeze }
    $ends = Array.new(200) { |i| "library/concerns/number_#{i}_of_all_the_parts.rb" + "" }
    $shared = Array.new(50) { $whole.first[5..] }
    GC.start
    puts :up
    $stdout.flush
    sleep
  RUBY

  TEXT = "a secret text, the same in three thousand strings"

  def test_a_process_tells_its_strings
    with_agent(SCRIPT) do |pid|
      told = json("strings", pid.to_s, "--top", "1000")
      same = group(told, "a secret text")
      # And the literal itself; a few that were let go may still be on the machine's stack.
      assert_equal ["duplicate", TEXT.bytesize, true], same.values_at("kind", "bytes", "interned")
      assert_includes 3000..3006, same["count"]
      assert_operator same["gain_bytes"], :>=, 3000 * ObjectSpace.memsize_of(TEXT.dup)
      assert_operator told["suffixes"], :>=, 199
      assert_operator told["places"]["shared"]["count"], :>=, 50
      assert(told["shared_with"].any? { |root| root["strings"] >= 50 && root["sample"].to_s.include?("/srv/app/releases/lib") })
      assert_equal told["string_bytes"], told["places"].values.sum { |sum| sum["held_bytes"] }
      assert_equal told["shareable_bytes"], told["duplicate_bytes"] + told["suffix_bytes"]
      assert_operator told["reading"]["pause_seconds"], :>, 0
    end
  end

  def test_what_the_process_says_of_all_its_strings_is_what_it_counts
    with_agent(SCRIPT) do |pid|
      told = json("strings", pid.to_s)
      counted = type(ask(pid), "T_STRING")
      assert_in_delta counted["count"], told["strings"], 500
      assert_in_delta counted["slot_bytes"] + counted["malloc_bytes"], told["string_bytes"], 100_000
    end
  end

  # Digests find the same, but for what the process made meanwhile, and nothing of the text leaves the process.
  def test_without_content_the_same_is_found
    with_agent(SCRIPT) do |pid|
      told, veiled = [[], ["--no-content"]].map { |words| json("strings", pid.to_s, "--top", "10", *words) }
      %w[strings string_bytes asked_bytes duplicate_bytes suffix_bytes copies suffixes group_count].each do |key|
        assert_in_delta told[key], veiled[key], key.end_with?("bytes") ? 3000 : 30, key
      end
      refute_includes JSON.generate(veiled), "secret"
      assert_nil veiled["groups"].first["sample"]
      { 1 => true, 0 => false }.each do |content, there|
        records = whole_answer(pid, content)
        assert_equal there, records.include?(TEXT)
        assert_equal there, records.include?("number_17_of")
      end
    end
  end

  def whole_answer(pid, content)
    Culet::Agent::Conversation.new(pid).ask("strings content=#{content} most_bytes=100000000", limit_seconds: 60, wait_seconds: 10)
  end

  def test_each_string_is_told_once
    with_agent(SCRIPT) do |pid|
      bytes = whole_answer(pid, 1)
      addresses = []
      at = 0
      while at < bytes.bytesize - 256
        addresses << bytes.byteslice(at + 8, 8).unpack1("Q")
        at += bytes.byteslice(at, 4).unpack1("L")
      end
      assert_equal JSON.parse(bytes.byteslice(-256, 256))["strings"], addresses.size
      assert_equal addresses.uniq.size, addresses.size
      assert_operator bytes.scan(TEXT).size, :>=, 3000
    end
  end

  # Without a collection in the program, which would stop it.
  def test_garbage_is_not_told
    script = <<~RUBY
      GC.disable
      20_000.times { |number| "garbage that nobody reaches, of some length: \#{number % 10}".upcase! }
      #{SAY_UP}
      loop { sleep 0.01 until $stdin.wait_readable; $stdin.gets; puts GC.count; $stdout.flush }
    RUBY
    reader, feed = IO.pipe
    with_started(*AgentHelper::CARRYING, "-rio/wait", "-e", "puts GC.count; $stdout.flush\n#{script}", env: TestHelper::NEUTRAL, in: reader) do |pid, out|
      out.gets
      out.gets
      feed.puts
      before = out.gets
      told = json("strings", pid.to_s, "--top", "1000")
      refute_includes JSON.generate(told["groups"]), "GARBAGE"
      assert_operator told["strings"], :<, 20_000
      feed.puts
      assert_equal before, out.gets, "collections"
    end
  end

  # Their texts together are many times what the process has.
  def test_slices_of_one_large_buffer_are_refused
    with_agent("$large = 'x' * 900_000; $slices = Array.new(2_000) { |at| $large[at..] }; #{SAY_UP}; sleep") do |pid|
      assert_sentence(/refuses: its strings have more text than fits into its memory: many share large buffers/, "strings", pid.to_s)
    end
  end

  def test_the_program_goes_on_as_before
    script = <<~RUBY
      before = Signal.list.size
      puts :up
      $stdout.flush
      gets
      puts [GC.enable, Thread.list.size, Signal.list.size - before].inspect
    RUBY
    with_fed(*AgentHelper::CARRYING, "-e", script, env: TestHelper::NEUTRAL) do |pid, output, feed|
      assert_equal "up\n", output.gets
      assert_operator json("strings", pid.to_s)["strings"], :>, 1000
      feed.puts
      assert_equal "[false, 1, 0]\n", output.gets
    end
  end

  def test_allocation_sites_of_a_process_that_traces
    tracing = "require 'objspace'\nObjectSpace.trace_object_allocations_start\n"
    with_agent(tracing + SCRIPT) do |pid|
      told = json("strings", pid.to_s)
      assert told["traced"]
      assert_match(/\A-e:3\z/, group(told, "a secret text")["sites"].first["site"])
      assert_equal "-e", told["files"].first["name"]
      # Asking makes strings, which are not told.
      assert_in_delta told["strings"], json("strings", pid.to_s)["strings"], 50
    end
  end

  # The one whose page is in the documentation.
  def test_the_example_could_share_what_it_says
    program = [*AgentHelper::CARRYING, File.join(TestHelper::ROOT, "docs/site/examples/paths.rb")]
    with_program(*program, env: TestHelper::NEUTRAL) do |pid|
      told = json("strings", pid.to_s)
      assert_equal [3001, 3001], %w[waiting closed].map { |start| group(told, start)["count"] }
      assert_operator told["suffixes"], :>=, 4000
      assert told["worth_it"]
    end
  end

  def test_what_is_no_question_about_strings_is_refused
    with_agent("#{SAY_UP}; sleep") do |pid|
      ["strings", "strings content=x most_bytes=1 limit_ms=1 wait_ms=1", "strings content=0 most_bytes=1 limit_ms=-1 wait_ms=1",
       "strings content=0"].each do |question|
        assert_match(/\Aerror its agent belongs to another version/, raw(pid, "culet-agent 1 #{question}\n"))
      end
    end
  end

  def test_without_an_agent_one_line_says_how_to_get_it
    with_program(RbConfig.ruby, "-e", TestHelper::WAITING, env: TestHelper::NEUTRAL) do |pid|
      assert_sentence(/has no agent; start it with RUBYOPT=-r\$\(culet lib agent\)/, "strings", pid.to_s)
    end
    assert_sentence(/there is no process 99999999|no process/, "strings", "99999999")
  end

  def test_beside_a_ractor
    script = "Warning[:experimental] = false; $r = Ractor.new { Ractor.receive }; #{SAY_UP}; sleep"
    with_agent(script) do |pid|
      if RUBY_VERSION.match?(/\A3\.[34]\./)
        assert_match(/several Ractors run, and this Ruby has no lock to stop them/, run_culet("strings", pid.to_s)[1])
      else
        assert_operator json("strings", pid.to_s)["strings"], :>, 1000
      end
    end
  end
end
