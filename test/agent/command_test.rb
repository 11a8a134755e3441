# frozen_string_literal: true

require "test_helper"
require "stringio"
require "culet/native"
require "culet/model/agent/command"

# Commands whose Ruby processes wait at their end until they have been looked at.
class AgentCommandTest < Minitest::Test
  Looked = Struct.new(:pid, :total_bytes, :title)

  def setup
    @notes = StringIO.new
    @looked = []
  end

  def test_the_process_waits_until_it_has_been_looked_at
    Dir.mktmpdir do |folder|
      path = File.join(folder, "order")
      found, command = run_ruby("at_exit { File.write(#{path.inspect}, 'ended') }") do |pid|
        # The program's own handler has run, and the process is there.
        Looked.new(pid, 1, [File.read(path), File.exist?("/proc/#{pid}/stat")])
      end
      assert_equal ["ended", true], found.title
      assert_equal [found.pid, 0], [command.instance_variable_get(:@pid), command.status.exitstatus]
      refute_path_exists "/proc/#{found.pid}"
    end
  end

  def test_forked_processes_wait_too_and_the_commands_own_counts
    found, = run_ruby("3.times { fork { } }; Process.waitall") { |pid| Looked.new(pid, 10 - @looked.size) }
    assert_equal found.pid, @looked.last
    assert_equal 4, @looked.size
    assert_equal "culet: 3 more Ruby processes of the command ended; the report covers one\n", @notes.string
  end

  def test_of_other_processes_the_largest_counts
    script = "exec('sh', '-c', '\"$0\" -e 1; \"$0\" -e 2; true', #{RbConfig.ruby.inspect})"
    found, = run_ruby(script) { |pid| Looked.new(pid, @looked.size) }
    assert_equal [2, @looked.last], [@looked.size, found.pid]
  end

  def test_a_failed_look_holds_nobody_up
    error = assert_raises(Culet::Error) { run_ruby("puts 1") { |pid| raise Culet::Error, "process #{pid} refuses" } }
    assert_equal ["process #{@looked.first} refuses", 1], [error.message, error.exit_status]
  end

  def test_what_leaves_nothing_to_look_at
    error = assert_raises(Culet::Error) { run_ruby("exit!(4)") { |pid| Looked.new(pid, 1) } }
    assert_match(/\Ano Ruby process could be looked at: .* or it ended by exit!/, error.message)
    assert_equal 4, error.exit_status
    error = assert_raises(Culet::Error) { run_ruby("Process.kill(:KILL, Process.pid)") { |pid| Looked.new(pid, 1) } }
    assert_match(/was killed by SIGKILL before culet could look at it/, error.message)
    assert_equal 137, error.exit_status
  end

  # A process that outlives the command and ends later finds no socket.
  def test_a_daemon_is_not_held_up
    Dir.mktmpdir do |folder|
      path = File.join(folder, "daemon")
      reader, writer = IO.pipe
      run_ruby("fork { Process.daemon(true, true); STDIN.read; at_exit { File.write(#{path.inspect}, 'ended') } }; Process.waitall", in: reader) do |pid|
        Looked.new(pid, 1)
      end
      reader.close
      writer.close
      assert_settles("the daemon ends") { File.exist?(path) }
    end
  end

  private

  def run_ruby(script, **redirections)
    look = lambda do |pid|
      @looked << pid
      yield pid
    end
    command = Culet::Agent::Command.new(command: [RbConfig.ruby, "-e", script], program: RbConfig.ruby, notes: @notes,
                                        redirections: { out: File::NULL, **redirections }, &look)
    [command.call, command]
  end
end
