# frozen_string_literal: true

require "agent/agent_helper"

# The conversation itself, and who is let in.
class AgentListenerTest < Minitest::Test
  include AgentHelper

  def test_one_line_is_asked_and_one_answer_comes
    with_agent("#{SAY_UP}; sleep") do |pid|
      answer = raw(pid, "culet-agent 1 data=1 limit_ms=5000 wait_ms=5000\n")
      size = answer[/\Aok (\d+)\n/, 1].to_i
      body = answer.lines.drop(1)
      assert_equal size, body.join.bytesize
      assert_equal(%w[gc vm allocator_statistics objects], body.map { |line| JSON.parse(line)["kind"] })
    end
  end

  def test_what_is_no_question_is_refused
    with_agent("#{SAY_UP}; sleep") do |pid|
      ["GET / HTTP/1.1\n", "culet-agent 2 data=1 limit_ms=1 wait_ms=1\n", "culet-agent 1 data=1 limit_ms=-1 wait_ms=1\n",
       "culet-agent 1 data=1 limit_ms=1 wait_ms=999999999\n"].each do |line|
        assert_equal "error its agent belongs to another version of culet; use that version\n", raw(pid, line)
      end
      assert_equal "", raw(pid, "x" * 10_000) # no line at all: hung up on
      assert ask(pid).fact("objects")["complete"]
    end
  end

  # Stops a process, as a reader of its memory does, until its input ends.
  TRACER = <<~RUBY
    require "fiddle"
    ptrace = Fiddle::Function.new(Fiddle.dlopen(nil)["ptrace"], [Fiddle::TYPE_LONG] * 4, Fiddle::TYPE_LONG)
    seize, interrupt = 0x4206, 0x4207
    [seize, interrupt].each { |request| ptrace.call(request, Integer(ARGV.first), 0, 0).zero? or abort }
    puts "up"
    $stdout.flush
    $stdin.read
  RUBY

  def test_a_process_that_another_tool_has_paused_is_asked_when_it_runs_again
    with_agent("#{SAY_UP}; sleep") do |pid|
      asking = nil
      IO.popen([RbConfig.ruby, "-e", TRACER, pid.to_s], "r+") do |tracer|
        assert_equal "up\n", tracer.gets
        sleep 0.01 until Culet::Processes::Cpu.state(pid) == "t"
        asking = Thread.new { ask(pid) }
        asking.report_on_exception = false
        sleep 0.01 until !asking.alive? || asking.backtrace.to_a.any? { |line| line.include?("check_running") }
      end
      assert asking.value.fact("objects")["complete"]
    end
  end

  def test_who_hangs_up_does_no_harm
    with_agent("#{SAY_UP}; sleep") do |pid|
      10.times do |index|
        socket = endpoint(pid)
        socket.write("culet-agent 1 data=1 limit_ms=5000 wait_ms=5000\n") if index.odd?
        socket.close
      end
      assert ask(pid).fact("objects")["complete"]
    end
  end

  def test_another_user_is_refused_by_the_agent_and_by_the_verb
    skip "only root can become another user" unless Process.euid.zero?

    with_agent("#{SAY_UP}; sleep") do |pid|
      assert_match(/belongs to another user; run culet as that user or as root/, as_user(NOBODY) { ask(pid).inspect })
    end
  end

  # Whoever takes the name first cannot answer in its stead, nor keep it from being asked.
  def test_a_name_that_somebody_else_sits_on
    script = <<~RUBY
      require "socket"
      name = "\\0culet-agent/" + Process.pid.to_s + "/" + File.stat("/proc/self/ns/pid").ino.to_s
      reader, writer = IO.pipe
      fork do
        listener = Socket.new(:UNIX, :STREAM)
        listener.bind(Socket.sockaddr_un(name))
        listener.listen(5)
        writer.puts
        begin
          listener.accept.first.write("ok 0\n")
        rescue Errno::EPIPE
          nil # it was not believed, and hung up on
        end
        sleep
      end
      reader.gets
      require "culet/agent"
      puts :up
      $stdout.flush
      sleep
    RUBY
    with_program(RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-e", script, env: TestHelper::NEUTRAL) do |pid|
      assert ask(pid).fact("objects")["complete"]
    end
  end

  %w[culet jemalloc tcmalloc mimalloc].each do |name|
    define_method(:"test_#{name}_tells_its_own_statistics") do
      require "culet/allocators"
      environment = Culet::Allocators.parse(name).environment({})
      with_agent("$kept = Array.new(30_000) { 'x' * 1000 }; #{SAY_UP}; sleep", env: environment) do |pid|
        told = ask(pid).fact("allocator_statistics")
        assert_equal name, told["name"]
        assert_operator told["figures"].fetch(STATISTICS.fetch(name)), :>=, 30_000_000
        assert(told["figures"].each_value.all? { |value| value.is_a?(Integer) || name == "culet" })
      end
    end
  end

  # What the program holds, as that allocator calls it.
  STATISTICS = { "culet" => "used_bytes", "jemalloc" => "allocated_bytes", "tcmalloc" => "current_allocated_bytes", "mimalloc" => "committed_bytes" }.freeze

  def test_under_an_allocator_whose_free_blocks_are_not_known_the_rest_is_called_so
    in_directory do |directory|
      path = File.join(directory, "jemalloc.snapshot")
      require "culet/allocators"
      with_agent("$kept = Array.new(30_000) { 'x' * 1000 }; #{SAY_UP}; sleep", env: Culet::Allocators.parse("jemalloc").environment({})) do |pid|
        assert_culet_success("snapshot", "--objects", pid, "--out", path)
      end
      assert_equal "malloc_unsplit", json("report", path)["malloc_holdings"]["level"]
      text, = run_culet("report", path)
      assert_match(/^malloc: used and free .*\n  strings /, text)
      assert_match(/^  known to C code only, or free /, text)
      assert_match(/^statistics of jemalloc: allocated /, text)
    end
  end

  # A process tells of itself, not of what is read from outside.
  def test_records_of_other_kinds_are_not_taken_from_it
    error = assert_raises(Culet::Error) { Culet::Agent::Records.new("{\"kind\":\"process\",\"pid\":1}\n") }
    assert_match(/sent an invalid answer/, error.message)
    assert_match(/not JSON/, assert_raises(Culet::Error) { Culet::Agent::Records.new("\0\n") }.message)
  end

  def test_the_records_come_before_the_checksum_and_fit_it
    records = Culet::Agent::Records.new("{\"kind\":\"vm\",\"version\":\"#{"9" * 300}\"}\n")
    snapshot = Culet::Scope::Builder.new(records.stream(small_stream)).call
    assert_equal "9" * 300, snapshot.vm["version"]
    assert_equal 7, snapshot.pid
    assert_raises(Culet::Error) { records.stream("nothing") }
  end

  # What a file says of objects is checked like all else in it.
  def test_damaged_counts_are_a_sentence
    whole = { "seconds" => 0.1, "complete" => true, "data_asked" => true, "count" => 1, "slot_bytes" => 40, "malloc_bytes" => 9, "elsewhere_bytes" => 0,
              "why" => "", "data" => [], "internals" => [], "types" => [] }
    [{ "types" => 3 }, { "types" => [3] }, { "types" => [{}] }, { "count" => -1 }, { "complete" => 1 }, { "seconds" => "x" }].each do |wrong|
      stream = small_stream { |writer| writer.object("objects", whole.merge(wrong)) }
      assert_match(/is damaged: /, assert_raises(Culet::Error) { Culet::Scope::Builder.new(stream).call }.message, wrong.inspect)
    end
    assert_equal(9, Culet::Scope::Builder.new(small_stream { |writer| writer.object("objects", whole) }).call.objects.malloc_bytes)
  end

  ODD = [nil, true, "", "x\e[31m", -1, 0, 1.5, 1e308, 2**64, 10**30, [], [nil], {}, { "a" => -1 }].freeze

  # Whatever stands in these records, there is a report or a sentence.
  def test_odd_values_are_a_report_or_a_sentence
    require "culet/tools/report"
    require "culet"
    records = Culet::Agent.detail(true, 10.0).lines.map { |line| JSON.parse(line) }
    outcomes = records.flat_map do |record|
      (record.keys - ["kind"]).product(ODD).map { |key, odd| outcome(record.merge(key => odd)) }
    end
    tally = records.last["types"].first
    outcomes += tally.keys.product(ODD).map { |key, odd| outcome(records.last.merge("types" => [tally.merge(key => odd)])) }
    assert_equal %i[report sentence], outcomes.uniq.sort
  end

  private

  def outcome(fields)
    stream = small_stream { |writer| writer.object(fields["kind"], fields.except("kind")) }
    snapshot = Culet::Scope::Builder.new(stream, name: "it").call
    difference = Culet::Report::Difference.new(snapshot, snapshot)
    refute_includes Culet::Report::Table.new(snapshot).to_s + Culet::Report::DifferenceTable.new(difference).to_s, "\e", fields.inspect
    JSON.generate([Culet::Report::Document.new(snapshot).to_h, difference.to_h])
    :report
  rescue Culet::Error => e
    assert_match(/\Ait is damaged: /, e.message)
    :sentence
  end
end
