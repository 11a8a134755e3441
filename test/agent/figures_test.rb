# frozen_string_literal: true

require "agent/agent_helper"

# The request for figures, and the connection that it keeps.
class AgentFiguresTest < Minitest::Test
  include AgentHelper

  QUESTION = "culet-agent 1 figures\n"

  def test_a_connection_answers_again_and_again
    with_agent("#{SAY_UP}; sleep") do |pid|
      socket = endpoint(pid)
      first, second = Array.new(2) { question(socket) }
      assert_operator first["live_slots"], :<=, first["slots"]
      assert_operator first["malloc_used_bytes"], :>, 100_000
      assert_operator second["allocated_objects"], :>=, first["allocated_objects"]
      assert_equal 0, first["profile"]
    ensure
      socket&.close
    end
  end

  # The first answer, too: what a boot made is counted, though no Ruby thread has run since.
  def test_the_first_figures_are_no_older_than_the_last_collection
    with_agent("$kept = Array.new(200_000) { +'' }; GC.start; #{SAY_UP}; sleep") do |pid|
      socket = endpoint(pid)
      assert_operator question(socket)["live_slots"], :>, 200_000
    ensure
      socket&.close
    end
  end

  %w[culet jemalloc tcmalloc].each do |name|
    define_method(:"test_#{name}_tells_what_is_in_use") do
      require "culet/allocators"
      environment = Culet::Allocators.parse(name).environment({})
      with_agent("$kept = Array.new(30_000) { 'x' * 1000 }; #{SAY_UP}; sleep", env: environment) do |pid|
        socket = endpoint(pid)
        used, free = question(socket).values_at("malloc_used_bytes", "malloc_free_bytes")
        assert_includes 30_000_000..50_000_000, used
        assert_operator free, :<, 30_000_000
      ensure
        socket&.close
      end
    end
  end

  def test_figures_follow_a_busy_process
    with_agent("#{SAY_UP}; loop { Array.new(1000) { +'' } }") do |pid|
      socket = endpoint(pid)
      counts = []
      assert_settles("its figures change") { counts.push(question(socket)["allocated_objects"]).uniq.size > 3 }
      assert_equal counts.sort, counts
    ensure
      socket&.close
    end
  end

  # Nothing runs in an idle process, so its pages stay shared with its parent's.
  def test_an_idle_process_stays_asleep
    with_agent("Thread.new { Thread.pass until Thread.main.status == 'sleep'; #{SAY_UP} }; sleep") do |pid|
      socket = endpoint(pid)
      2.times { question(socket) }
      assert_settles("it sleeps") { Culet::Processes::Cpu.state(pid) == "S" }
      before = switches(pid)
      10.times { question(socket) }
      assert_equal before, switches(pid)
    ensure
      socket&.close
    end
  end

  def test_other_requests_are_answered_beside_a_kept_connection
    with_agent("#{SAY_UP}; sleep") do |pid|
      socket = endpoint(pid)
      question(socket)
      assert ask(pid).fact("objects")["complete"]
      question(socket)
      socket.write("anything else\n")
      assert_match(/\Aerror its agent belongs to another version/, socket.read)
    ensure
      socket&.close
    end
  end

  private

  def question(socket)
    socket.write(QUESTION)
    length = socket.gets[/\Aok (\d+)\n\z/, 1].to_i
    JSON.parse(socket.read(length))
  end

  # @return [Integer] how often the main thread went to sleep
  def switches(pid) = File.read("/proc/#{pid}/task/#{pid}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i
end
