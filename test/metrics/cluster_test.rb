# frozen_string_literal: true

require "test_helper"
require "culet/metrics"
require_relative "metrics_helper"

# The figures of a process and of those it forks.
class MetricsClusterTest < Minitest::Test
  include MetricsHelper

  # A parent with two children, one of which has a child. It prints a text for each line that it reads; a child prints one on USR1.
  PARENT = <<~RUBY
    $stdout.sync = true
    Culet::Metrics.start
    children = [fork { sleep }, fork { fork { sleep }; sleep }]
    sleep 0.05 until Culet::Metrics.text.scan(/^process_threads/).size == 4 && !Culet::Metrics.text.match?(/^process_threads.* 1$/)
    while (line = $stdin.gets)
      case line
      when "text\\n" then puts Culet::Metrics.text, "."
      when "pids\\n" then puts children.join(" "), "."
      when "child\\n" then puts IO.popen("-") { |io| io ? io.read : print(Culet::Metrics.text) }, "."
      when "descriptors\\n" then puts Dir.children("/proc/self/fd").size, "."
      when "forks\\n" then 50.times { Process.wait(fork { exit!(0) }) }; puts "."
      end
    end
  RUBY

  def test_all_processes_and_those_that_they_fork
    with_parent do |parent, pid|
      samples = parse(ask(parent, "text"))
      children = ask(parent, "pids").split
      assert_equal 4, pids(samples).size
      assert_empty [pid.to_s, *children] - pids(samples)
      pids(samples).each do |one|
        assert_operator value(samples, "ruby_gc_heap_slots", pid: one, state: "live"), :>, 1000
        assert_operator value(samples, "culet_process_report_age_seconds", pid: one), :<, 30
      end
      assert_empty samples.filter_map { |one| one.labels["worker"] }, "only servers name their processes"
    end
  end

  def test_a_killed_process_is_gone_at_the_next_scrape
    with_parent do |parent, _|
      first = ask(parent, "pids").split.first
      assert_includes pids(parse(ask(parent, "text"))), first
      Process.kill(:KILL, first.to_i)
      refute_includes pids(parse(ask(parent, "text"))), first
    end
  end

  # It answers nothing: its last figures stay, with their age, and the kernel's are of now.
  def test_a_process_that_does_not_answer_holds_up_nothing
    with_parent do |parent, _|
      first = ask(parent, "pids").split.first
      ask(parent, "text")
      stop(first.to_i)
      ages = Array.new(2) { parse(ask(parent, "text")) }.map { |samples| value(samples, "culet_process_report_age_seconds", pid: first) }
      assert_operator ages.last, :>=, ages.first + Culet::Metrics::Collector::WAIT
      Process.kill(:CONT, first.to_i)
      ask(parent, "text")
      assert_operator value(parse(ask(parent, "text")), "culet_process_report_age_seconds", pid: first), :<, ages.last
    end
  end

  def test_a_child_has_the_text_of_all
    with_parent do |parent, pid|
      found = pids(parse(ask(parent, "child")))
      assert_includes found, pid.to_s
      assert_operator found.size, :>=, 4
    end
  end

  def test_short_lived_children_leave_nothing_behind
    with_parent do |parent, _|
      ask(parent, "text")
      before = ask(parent, "descriptors").to_i
      ask(parent, "forks")
      assert_equal 4, pids(parse(ask(parent, "text"))).size
      # The collector closes a socket a moment after its last byte was read.
      100.times { sleep 0.05 if ask(parent, "descriptors").to_i > before }
      assert_operator ask(parent, "descriptors").to_i, :<=, before
    end
  end

  def test_a_child_whose_parent_has_ended_goes_on_alone
    out = run_ruby(<<~RUBY)
      reader, writer = IO.pipe
      Culet::Metrics.start
      fork do
        fork do
          sleep 0.01 until Process.ppid == 1 || !File.exist?("/proc/\#{ARGV[0]}")
          writer.write(Culet::Metrics.text)
        end
        exit!(0)
      end
      Culet::Metrics.stop
      Process.waitall
      writer.close
      print reader.read
    RUBY
    assert_equal 1, pids(parse(out)).size
  end

  # It closes the question that it has, then the one that waits, then its own end.
  def test_a_collector_that_ends_while_it_is_asked_is_none
    ours, theirs = UNIXSocket.pair(:SEQPACKET)
    collector = Thread.new do
      2.times { theirs.recvmsg(scm_rights: true).last.unix_rights.each(&:close) }
      theirs.close
    end
    assert_nil Culet::Metrics::CollectorSocket.new(ours).text
    collector.join
  end

  # One that lacks descriptors closes each question.
  def test_a_collector_that_refuses_says_so
    ours, theirs = UNIXSocket.pair(:SEQPACKET)
    collector = Thread.new { loop { theirs.recvmsg(scm_rights: true).last.unix_rights.each(&:close) } }
    error = assert_raises(Culet::Error) { Culet::Metrics::CollectorSocket.new(ours).text }
    assert_match(/cannot do so at the moment/, error.message)
  ensure
    collector.kill.join
  end

  # What a process sends is checked: it may be confused, or another program's by now.
  def test_an_invalid_answer_ends_a_membership
    collector = Culet::Metrics::Collector.new(worker_names: -> { {} }).start
    socket = collector.instance_variable_get(:@socket)
    figures = Culet::Metrics::Report.new.message
    answers = ["short", "\x7f".b * figures.bytesize, "#{figures}[", "#{figures}[[\"unknown\",{},1]]", "#{figures}[[\"culet_profile_site_bytes\",{},\"1\"]]"]
    sockets = answers.map { UNIXSocket.pair(:SEQPACKET) }
    sockets.map(&:last).each { |theirs| socket.pass("process", theirs) }
    forked = sockets.zip(answers).map do |(mine, _), answer|
      Thread.new do
        mine.recv(16)
        mine.send(answer, 0)
        mine.recv(16)
      end
    end
    assert_equal [Process.pid.to_s], pids(parse(collector.text))
    assert_equal [true], forked.map { |one| one.value.to_s.empty? }.uniq, "the collector closed their sockets"
  ensure
    collector&.stop
  end

  # Bytes that are no text are replaced; a number of no end is not parsed.
  def test_what_is_no_text_in_a_report_is_replaced
    figures = Culet::Metrics::Report.new.message
    report = ->(rank, number) { Culet::Metrics::Report.parse("#{figures}[[\"culet_profile_site_bytes\",{\"rank\":\"#{rank}\"},#{number}]]".b) }
    assert_equal ["culet_profile_site_bytes", { "rank" => "1?" }, 5], report.call("1\xff".b, 5).last
    assert_nil report.call("1", "9" * 500)
  end

  def test_start_says_whether_it_serves
    assert_equal "true\n", run_ruby("p Culet::Metrics.start(nil)")
    port = free_port
    assert_equal "true\n", run_ruby("p Culet::Metrics.start(#{port})")
    blocked = TCPServer.new("127.0.0.1", 0)
    ["http", "", "1.2.3.4:0", "127.0.0.1:#{blocked.addr[1]}"].each do |address|
      out, err = assert_success(RbConfig.ruby, *FLAGS, "-rculet/metrics", "-e", "p Culet::Metrics.start, Culet::Metrics.text.size > 1000",
                                env: NEUTRAL.merge("CULET_METRICS" => address))
      next assert_equal ["true\ntrue\n", ""], [out, err] if address.empty?

      assert_equal "false\ntrue\n", out
      assert_match(/\Aculet: metrics are not served: .*#{Regexp.escape(address[/\w+\z/])}.*\n\z/, err)
    end
  ensure
    blocked&.close
  end

  private

  # @yield [parent, pid] an IO to ask, the parent's number
  def with_parent
    IO.popen([NEUTRAL, RbConfig.ruby, *FLAGS, "-rculet/metrics", "-e", PARENT, { pgroup: true }], "r+") do |io|
      yield io, io.pid
    ensure
      Process.kill(:KILL, -io.pid)
    end
  end

  def ask(parent, question)
    parent.puts(question)
    lines = []
    while (line = parent.gets) != ".\n"
      flunk "the parent has ended" unless line
      lines << line
    end
    lines.join
  end
end
