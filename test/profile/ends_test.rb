# frozen_string_literal: true

require_relative "verb_helper"
require "culet/tools/profile"
require "culet/tools/profile/descendants"
require "culet/tools/profile/session"
require "stringio"

# Processes that end in other ways than by their at_exit handlers.
class ProfileEndsTest < Minitest::Test
  include ProfileVerbHelper

  SMALL = ["--sample", "16k", "--by", "line"].freeze
  # `asked` returns when culet has requested the profile so often. The agent works in the handler of a real-time signal.
  ASKED = <<~RUBY
    $asked = 0
    64.downto(35) do |number|
      before = trap(number, "DEFAULT")
      trap(number, before.is_a?(Proc) ? proc { before.call(number); $asked += 1 } : before || "DEFAULT")
    end
    def asked(times) = (sleep 0.01 until $asked >= times)
  RUBY
  # The environment of a program without a profile.
  UNPROFILED = '{ "LD_PRELOAD" => nil, "RUBYOPT" => nil, "CULET_PROFILE" => nil }'

  def test_workers_that_leave_by_exit
    document = profiled(<<~RUBY)
      keep(400)
      leave = [-> { exit! }, -> { Process.exit!(0) }, -> { Kernel.exit!(true) }, -> { at_exit { exit!(0) } }]
      pids = leave.map { |one| fork { keep(150); one.call } }
      raise "unexpected status" unless pids.map { |pid| Process.wait2(pid).last.exitstatus } == [1, 0, 0, 0]
    RUBY
    assert_kept(document)
    assert_equal ["exited"] * 5, states(document)
  end

  def test_exit_in_a_trap_handler
    document = profiled(<<~RUBY)
      trap("TERM") { exit!(0) }
      keep(1_000)
      Process.kill(:TERM, Process.pid)
      sleep
    RUBY
    assert_kept(document)
  end

  def test_exit_beside_a_timeout
    assert_kept(profiled("require 'timeout'; keep(1_000); Timeout.timeout(3600) { Thread.new { exit!(0) }.join }"))
  end

  # What the first program held is free when the second one has replaced it.
  def test_exec_of_a_program_with_a_profile
    code = "keep(1_000); exec(RbConfig.ruby, '-e', 'exit!(0)')"
    document = profiled(code)
    assert_empty(rows(document).select { |row| kept?(row) })
    assert_equal %w[replaced exited], states(document)
    names = document["processes"].map { |one| one["name"] }
    assert_match(/\Aprocess \d+ \(ruby.*\) before exec\z/, names[0])
    row = rows(profiled(code, "--view", "allocated")).find { |one| kept?(one) }
    assert_in_delta KEPT_BYTES, row["bytes"], 0.3 * KEPT_BYTES
  end

  def test_exec_of_a_program_without_a_profile
    document = profiled("keep(1_000); Process.exec(#{UNPROFILED}, RbConfig.ruby, '-e', '')")
    assert_kept(document)
    assert_equal %w[replaced], states(document)
  end

  def test_exec_that_fails
    document = profiled(<<~RUBY)
      keep(500)
      [Kernel, Process, self].each do |one|
        one.send(:exec, "no-such-program", unsetenv_others: true)
      rescue Errno::ENOENT
        keep(500) if one == self
      end
    RUBY
    assert_kept(document)
    assert_equal %w[exited], states(document)
  end

  def test_the_methods_are_as_before
    document = profiled(<<~RUBY)
      keep(1_000)
      begin
        Object.new.exit!
      rescue NoMethodError => e
        abort e.message unless e.message.include?("private")
      end
      abort "public" if [Object.new, 1].any? { |one| one.respond_to?(:exec) || one.respond_to?(:exit!) }
      abort "private" unless [Kernel, Process].all? { |one| one.respond_to?(:exec) && one.respond_to?(:exit!) }
      begin
        exit!("no status")
      rescue TypeError
        exit!(0)
      end
    RUBY
    assert_kept(document)
  end

  def test_a_killed_process_that_was_asked
    skip "this Ruby has no gem terminal-table" if Gem::Specification.find_all_by_name("terminal-table").empty?
    folder = new_folder
    path = program(folder, "#{ASKED}keep(1_000); asked(2); Process.kill(:KILL, Process.pid); sleep")
    out, err, status = run_culet("profile", *SMALL, "--", RbConfig.ruby, path, env: TestHelper::NEUTRAL)
    assert_equal 137, status.exitstatus, err
    assert_match(/was ended by SIGKILL/, err)
    assert_match(/app\.rb:#{KEEPING_LINE}/, out)
    assert_match(/^note: Process \d+ \(ruby.* app\.rb\) has ended; it was read \d+\.\d s before\./, out.gsub("\n  ", " "))
  end

  # Keeps 8 MB by malloc, then waits for a signal.
  C_PROGRAM = <<~C
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    char *kept[2048];
    __attribute__((noinline)) char *keep_block(void) { return memset(malloc(4096), 1, 4096); }
    int main(void)
    {
        for (int i = 0; i < 2048; i++)
            kept[i] = keep_block();
        puts("kept");
        fflush(stdout);
        for (;;)
            pause();
    }
  C

  # A signal whose action is the default one: of the keyboard, or one that culet forwards.
  def test_a_program_without_ruby_that_a_signal_ends
    folder = new_folder
    compile_c("#{folder}/keep", C_PROGRAM, "-O1", "-g")
    { INT: -1, TERM: 1 }.each { |signal, group| assert_interrupted(folder, signal, group) }
  end

  # It is asked when the command has ended.
  def test_a_process_that_goes_on
    document = profiled(<<~RUBY)
      #{ASKED}
      keep(500)
      reader, writer = IO.pipe
      fork do
        [$stdout, $stderr].each { |io| io.reopen(File::NULL) }
        Process.setproctitle("shop: worker 3")
        keep(500)
        writer.puts
        sleep
      end
      reader.gets
      asked($asked + 2) # the first may come from a look at the processes before the fork
    RUBY
    worker = document["processes"].last
    assert_equal %w[exited running], states(document)
    assert_equal "process #{worker["pid"]} (shop: worker 3)", worker["name"]
    assert_kept(document)
  ensure
    Process.kill(:KILL, worker["pid"]) if worker && worker["state"] == "running"
  end

  def test_a_process_that_leaves_nothing_is_named
    descendants do |group, pid|
      3.times { group.look }
      kill(pid)
      assert_empty group.take
      assert_equal ["process #{pid} (ruby.*)"], group.missing.map { |name| name.sub(/\(ruby.*\)/, "(ruby.*)") }
    end
  end

  def test_what_was_asked_is_returned_once
    descendants("-r#{LIBRARY}/culet/profile.rb", env: { "CULET_PROFILE" => "16k" }) do |group, pid|
      assert_equal [[pid, :running]], group.take.map { |stream| [stream.pid, stream.state] }
      kill(pid)
      assert_equal [[pid, :ended]], group.take.map { |stream| [stream.pid, stream.state] }
      assert_equal [[], []], [group.take, group.missing]
    end
  end

  # Also where the end of the process is noticed after its file was read.
  def test_what_was_written_replaces_an_answer
    descendants("-r#{LIBRARY}/culet/profile.rb", env: { "CULET_PROFILE" => "16k" }) do |group, pid, folder|
      3.times { group.look }
      answer = group.take.first
      File.binwrite(File.join(folder, pid.to_s), answer.text)
      assert_equal([:exited], group.take.map(&:state))
      kill(pid)
      assert_equal [[], [], []], [group.take, group.missing, Dir.children(folder)]
    end
  end

  # A worker that is replaced while the server is profiled.
  def test_a_running_process_that_ends_is_kept
    folder = new_folder
    code = "Process.setproctitle('shop worker'); keep(1_000); puts :up; $stdout.flush; sleep"
    command = [RbConfig.ruby, "-r#{LIBRARY}/culet/profile.rb", program(folder, code)]
    env = on_culet.merge("CULET_PROFILE" => "16k")
    with_program(*command, env: env) do |first|
      with_program(*command, env: env) do |second|
        notes = StringIO.new
        session = Culet::Profile::Session.new(sample_bytes: nil, stop: -> { false }, notes: notes) { [first, second] }
        session.start
        session.keep { true }
        kill(first)
        streams = session.read.to_h { |stream| [stream.pid, stream] }
        assert_equal [%i[running ended], ""], [streams.values_at(second, first).map(&:state), notes.string]
        assert_equal "process #{first} (shop worker)", streams[first].source
        data = Culet::Profile::Data.new(streams.values.map(&:recording))
        sites = data.sites_of(data.by(:live, :line).first, :live, :line).reject { |one| one.kind == :object }
        assert_in_delta 2 * KEPT_BYTES, sites.sum(&:bytes), 0.3 * KEPT_BYTES
        assert_equal [[second]], [session.read.map(&:pid)]
        assert_empty notes.string
      ensure
        session.stop
      end
    end
  end

  private

  # @return [Hash] the report on a command
  def profiled(code, *options)
    in_directory { |folder| profile(*SMALL, *options, "--", RbConfig.ruby, program(folder, code)) }
  end

  # `group`: -1 for all processes of a terminal, 1 for culet alone.
  def assert_interrupted(folder, signal, group)
    command = [*culet_command, "profile", "--sample", "16k", "--json", "--", "#{folder}/keep"]
    Open3.popen3(TestHelper::NEUTRAL.merge("TMPDIR" => folder), *command, pgroup: true) do |_, out, err, culet|
      assert_equal "kept\n", err.gets
      # The second file was begun after all blocks had been allocated.
      path = nil
      2.times do
        sleep 0.01 until (path = Dir[File.join(folder, "culet-profile*", "*.last")].first)
        File.rename(path, "#{folder}/former")
      end
      FileUtils.mv("#{folder}/former", path) unless File.exist?(path)
      Process.kill(signal, group * culet.pid)
      text = out.read
      assert_equal [128 + Signal.list.fetch(signal.to_s), false], [culet.value.exitstatus, text.empty?], err.read
      document = JSON.parse(text)
      assert_equal ["ended"], states(document)
      site = document["sites"].first
      assert_includes site["frames"].map { |frame| frame["method"] }, "keep_block"
      assert_in_delta 2048 * 4096, site["bytes"], 2 * (site["high_bytes"] - site["low_bytes"])
    ensure
      end_group(culet.pid) if culet.alive?
    end
  end

  def states(document) = document["processes"].map { |one| one["state"] }

  def kept?(row) = row["name"].end_with?("app.rb:#{KEEPING_LINE}")

  def kill(pid)
    Process.kill(:KILL, pid)
    sleep 0.01 until ["Z", nil].include?(Culet::Processes::Cpu.state(pid))
  end

  # Yields the processes of a Ruby that sleeps, its number, and the folder.
  def descendants(*options, env: {})
    in_directory do |folder|
      script = "puts :up; $stdout.flush; sleep"
      with_program(RbConfig.ruby, *options, "-e", script, env: on_culet.merge(env)) do |pid|
        yield Culet::Profile::Descendants.new(pid, folder), pid, folder
      end
    end
  end
end
