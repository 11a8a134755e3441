# frozen_string_literal: true

require_relative "requires_helper"
require_relative "../../boot/lib/report/unused_table"
require_relative "../../boot/lib/report/unused"

# Which code never ran: told at the end of a command, of a running process, of forked workers.
class RequiresUnusedTest < Minitest::Test
  include RequiresHelper

  CODE = <<~'RUBY'
    class Code
      def ran
        [1].each { |one| one.to_s }
      end

      def idle
        [1].each { |one| one.to_s }
      end

      def one_line(list) list.map { |one| one.to_s }; end
      def idle_line(list) list.map { |one| one.to_s }; end
      RAN = ->(one) { one.to_s }
      IDLE = ->(one) { one.to_s }

      def rescued
        Integer("5")
      rescue ArgumentError
        0
      end

      class << self
        def of_class
          5.to_s
        end
      end
      private

      def big_idle
        #{Array.new(300) { |number| "puts #{number}" }.join("; ")}
      end
    end
  RUBY
  RUNS = "Code.new.ran; Code.new.one_line([]); Code::RAN.call(1); Code.new.rescued"
  private_constant :CODE, :RUNS

  def setup
    super
    write("code.rb" => CODE.sub(/#\{(.*)\}$/) { eval(Regexp.last_match(1)) }) # rubocop:disable Security/Eval
  end

  def test_of_a_command
    document = unused("--", *ruby("-e", "require 'code'; #{RUNS}; eval('def evaluated = 5')"))
    code = file(document)
    assert_equal ["big_idle", "block in <class:Code>", "block in idle", "block in idle_line", "block in one_line",
                  "idle", "idle_line", "of_class", "rescue in rescued"],
                 code["unused"].map { |one| one["label"] }.sort
    assert_equal [13], code["unused"].filter_map { |one| one["line"] if one["label"] == "block in <class:Code>" }
    assert_equal code["unused_bytes"], code["unused"].sum { |one| one["iseq_bytes"] }
    assert_operator code["unused"].max_by { |one| one["iseq_bytes"] }.then { |one| one["label"] == "big_idle" ? one["iseq_bytes"] : 0 }, :>, 5_000
    assert_operator document["evaluated_bytes"], :>, 0
    assert_operator document["unseen_bytes"], :>, 0
    assert_empty document["problems"]
    assert_equal document["unused_bytes"], document["gems"].sum { |one| one["unused_bytes"] }
    refute(document["files"].any? { |one| one["path"].start_with?("#{ROOT}/lib/", "#{ROOT}/boot/") })
  end

  def test_the_table
    out, err, status = run_culet("requires", "--unused", "--top", "3", "--", *ruby("-e", "require 'code'; #{RUNS}; exit 4"), env: TestHelper::NEUTRAL)
    assert_equal 4, status.exitstatus, err
    assert_match(/\A-e \(process \d+\): [\d.]+ of [\d.]+ MB of compiled code never ran \(\d+ %\)$/, out)
    assert_match(/^the program +\d +[\d.]+ +[\d.]+ +\d+ %$/, out)
    assert_match(/^#{path("code.rb")} +[\d.]+ +[\d.]+ +\d+ %$/, out)
    assert_match(/^big_idle +[\d.]+ +#{path("code.rb")}:\d+$/, out)
    assert_match(/note: [\d.]+ MB of code was loaded before coverage started/, out)
    assert_includes err, "the command ended with status 4"
  end

  def test_of_a_process_that_is_running
    program = "require 'code'; #{RUNS}; trap(:USR1) { Code.new.idle; puts :done; $stdout.flush }; puts :up; $stdout.flush; sleep"
    answers = path("answers")
    Dir.mkdir(answers, 0o700)
    with_program(*ruby("-r#{ROOT}/lib/culet/unused.rb", "-e", program), env: TestHelper::NEUTRAL.merge("CULET_UNUSED" => answers)) do |pid|
      before = file(unused(pid.to_s))
      Process.kill(:USR1, pid)
      after = assert_settles("less is unused") { file(unused(pid.to_s)).then { |now| now if now["unused_bytes"] < before["unused_bytes"] } }
      assert_includes before["unused"].map { |one| one["label"] }, "idle"
      refute_includes after["unused"].map { |one| one["label"] }, "idle"
      assert_in_delta before["iseq_bytes"], after["iseq_bytes"], 0.1 * before["iseq_bytes"] # a body may go meanwhile
    end
  end

  # What ran before the first question is not heard of, and counts only when it runs again.
  def test_from_the_first_question_on
    program = "require 'code'; #{RUNS}; " \
              "[[:USR1, :idle], [:USR2, :ran]].each { |name, method| trap(name) { Code.new.public_send(method) } }; " \
              "puts :up; $stdout.flush; sleep"
    Dir.mkdir(path("answers"), 0o700)
    with_program(*ruby("-r#{ROOT}/lib/culet/unused.rb", "-e", program),
                 env: TestHelper::NEUTRAL.merge("CULET_UNUSED" => path("answers"), "CULET_UNUSED_FROM" => "asked")) do |pid|
      first, = assert_culet_success("requires", "--unused", pid.to_s, env: TestHelper::NEUTRAL)
      assert_match(/\Anote: process #{pid}: coverage starts now .*run\s+the\s+command\s+again/m, first)
      all = idle_of(pid)
      assert_equal %w[idle ran rescued], all & %w[idle ran rescued]
      assert_equal ["block in idle", "idle"], all - idle_after(pid, :USR1, "idle")
      assert_equal ["block in idle", "block in ran", "idle", "ran"], all - idle_after(pid, :USR2, "ran")
      table, = run_culet("requires", "--unused", pid.to_s, env: TestHelper::NEUTRAL)
      assert_match(/of compiled code did not run while coverage was on/, table)
    end
  end

  # A copy of it answers: it makes no object, and the program never meets the copy.
  def test_who_is_asked_grows_no_larger
    many = Array.new(4000) { |number| "def m#{number}(list)\n  list.map { |one| one.to_s }\n  list.size\nend" }.join("\n")
    write("many.rb" => many)
    with_program(*ruby("-r#{ROOT}/lib/culet/unused.rb", "-e", "require 'many'; #{WAITING}"), env: TestHelper::NEUTRAL) do |pid|
      before = private_bytes(pid)
      answers = Array.new(5) { Culet::Boot::UnusedInquiry.new(pid).call }
      assert_operator private_bytes(pid) - before, :<, 1 << 20
      assert(answers.all? { |one| one["files"].find { |file| file["path"] == path("many.rb") }["unused"].size == 8000 })
      assert_equal [pid, Process.pid], answers.first.values_at("pid", "parent_pid")
      assert_empty Dir.glob("/proc/#{pid}/task/*/children").flat_map { |file| File.read(file).split }
    end
  end

  # Neither descriptors nor copies stay.
  def test_who_hangs_up_leaves_nothing
    many = Array.new(2000) { |number| "def m#{number}(list) list.map { |one| one.to_s }; end" }.join("\n")
    write("many.rb" => many)
    with_program(*ruby("-r#{ROOT}/lib/culet/unused.rb", "-e", "require 'many'; #{WAITING}"), env: TestHelper::NEUTRAL) do |pid|
      Culet::Boot::UnusedInquiry.new(pid).call
      before = Dir.children("/proc/#{pid}/fd").size
      6.times do |index|
        socket = Culet::Agent::Endpoint.new(Culet::Processes::Live.find(pid)).connect
        socket.write("culet-agent 1 unused limit_ms=60000 wait_ms=5000\n")
        sleep(0.02 * index)
        socket.close
      end
      assert_equal pid, Culet::Boot::UnusedInquiry.new(pid).call["pid"]
      left = nil
      assert_settles(-> { "#{before} descriptors and no copy, not #{left}" }) { (left = [Dir.children("/proc/#{pid}/fd").size, copies_of(pid)]) == [before, 0] }
    end
  end

  # A program that waits for its children while it is asked gets none that it did not start.
  def test_who_waits_for_its_children_meets_its_own_alone
    program = "child = fork { sleep }; $stdout.puts :up; $stdout.flush; p Process.wait == child"
    Dir.mkdir(path("answers"), 0o700)
    with_started(*ruby("-r#{ROOT}/lib/culet/unused.rb", "-e", program), env: TestHelper::NEUTRAL) do |pid, output|
      assert_equal "up\n", output.gets
      3.times { assert_equal pid, Culet::Boot::UnusedInquiry.new(pid).call["pid"] }
      Process.kill(:TERM, Integer(File.read("/proc/#{pid}/task/#{pid}/children").split.first, 10))
      assert_equal "true\n", output.gets
    end
  end

  def test_a_wrong_word_for_when_to_begin
    _, err = assert_success(RbConfig.ruby, "-w", "-r#{ROOT}/lib/culet/unused.rb", "-e", "p Coverage.running?",
                            env: TestHelper::NEUTRAL.merge("CULET_UNUSED_FROM" => "later"))
    assert_equal "culet: unused code is not recorded: CULET_UNUSED_FROM: 'later' is not one of start, asked\n", err
  end

  # What any of the workers ran is not unused.
  def test_of_forked_workers
    document = unused("--", *ruby("-e", "require 'code'; 2.times { |number| fork { number.zero? ? Code.new.idle : Code.of_class } }; " \
                                        "Process.waitall; Code.new.ran"))
    labels = file(document)["unused"].map { |one| one["label"] }
    assert_equal 3, document["processes"].size
    refute_includes labels, "idle"
    refute_includes labels, "of_class"
    refute_includes labels, "ran"
    assert_includes labels, "rescued"
  end

  def test_a_document_is_read_back
    out, = run_culet("requires", "--unused", "--json", "--out", path("unused.json"), "--", *ruby("-e", "require 'code'"), env: TestHelper::NEUTRAL)
    assert_empty out
    out, = assert_culet_success("requires", "--unused", path("unused.json"))
    assert_match(/of compiled code never ran/, out)
  end

  # A group of processes has no one's title.
  def test_figures_and_names_of_several_processes
    processes = [4242, 4243].map { |pid| { "pid" => pid, "program" => "puma: cluster worker #{pid}" } }
    gem = { "gem" => "a gem", "files" => 1, "iseq_bytes" => 3_000_000, "unused_bytes" => 2_000_001, "untold_bytes" => 0, "unseen_bytes" => 0 }
    document = { "program" => "puma: cluster worker 4242", "since" => "start", "processes" => processes, "problems" => [], "gems" => [gem], "files" => [],
                 **gem.slice("iseq_bytes", "unused_bytes", "untold_bytes", "unseen_bytes"), "evaluated_bytes" => 0 }
    text = Culet::Boot::UnusedTable.new(document).to_s
    assert_equal "2 processes: 2.00 of 3.00 MB of compiled code never ran (67 %)", text.lines.first.chomp
    assert_equal ["67 %"], text.scan(/\d+ %/).uniq
    assert_equal "2 processes of puma", Culet::Boot::Unused.subject(document.merge("processes" => processes.map { |one| one.merge("program" => "puma") }))
    assert_equal "job.rb (process 4242)", Culet::Boot::Unused.subject(document.merge("program" => "job.rb", "processes" => processes.first(1)))
  end

  def test_a_program_that_measures_its_own_coverage_first
    _, err = assert_success(RbConfig.ruby, "-w", "-rcoverage", "-e", "Coverage.start; require '#{ROOT}/lib/culet/unused'; p Coverage.running?", env: TestHelper::NEUTRAL)
    assert_equal "culet: unused code is not recorded: coverage is already running\n", err
  end

  def test_bad_input_is_one_sentence
    with_program(RbConfig.ruby, "-e", WAITING, env: TestHelper::NEUTRAL) do |pid|
      { [pid.to_s] => /does not record which code runs; start it with/,
        ["--", "true"] => /nothing was recorded: true ended with status 0/, ["999999999"] => /999999999/,
        ["--", *ruby("-e", "Process.kill(:KILL, $$)")] => /was ended by SIGKILL/ }.each do |words, message|
        out, err, status = run_culet("requires", "--unused", *words, env: TestHelper::NEUTRAL)
        assert_equal [words.last.include?("KILL") ? 137 : 1, "", 1], [status.exitstatus, out, err.lines.size], err
        assert_match message, err
      end
    end
    out, err, status = run_culet("requires", "--unused")
    assert_equal [2, "", 1], [status.exitstatus, out, err.lines.size], err
  end

  # A folder that somebody else could have put there is not written to.
  def test_a_foreign_folder_is_refused
    Dir.mkdir(path("open"))
    File.chmod(0o777, path("open"))
    _, err, = run_program(RbConfig.ruby, "-w", "-r#{ROOT}/lib/culet/unused.rb", "-e",
                          "begin; Culet::Unused.write; rescue Culet::Error => e; warn e.message; exit! 0; end",
                          env: TestHelper::NEUTRAL.merge("CULET_UNUSED" => path("open")))
    assert_equal "#{path("open")} is not a private folder of this user\n", err
    assert_empty Dir.children(path("open"))
  end

  private

  # Copies are in its process group.
  def copies_of(pid)
    Dir.glob("/proc/[0-9]*/stat").count do |path|
      fields = File.read(path).rpartition(") ").last.split
      fields[2].to_i == pid && path != "/proc/#{pid}/stat" && fields[0] != "Z"
    rescue SystemCallError
      false # it has ended
    end
  end

  def private_bytes(pid) = File.read("/proc/#{pid}/smaps_rollup").scan(/^Private_(?:Clean|Dirty):\s+(\d+)/).flatten.sum(&:to_i) * 1024

  def unused(*words)
    out, = assert_culet_success("requires", "--unused", "--json", *words, env: TestHelper::NEUTRAL)
    JSON.parse(out)
  end

  def idle_of(pid) = file(unused(pid.to_s))["unused"].map { |one| one["label"] }.sort

  # @return [Array<String>] what is idle once the signal has had a method run
  def idle_after(pid, signal, method)
    Process.kill(signal, pid)
    assert_settles("#{method} has run") { idle_of(pid).then { |labels| labels unless labels.include?(method) } }
  end

  def file(document) = document["files"].find { |one| one["path"] == path("code.rb") } || flunk("code.rb is not told")
end
