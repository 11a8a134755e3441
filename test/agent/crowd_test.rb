# frozen_string_literal: true

require "minitest/mock"
require "agent/agent_helper"

# Many who ask at once, some of whom mean no good; and names that others sit on.
class AgentCrowdTest < Minitest::Test
  include AgentHelper

  WAITS = "#{SAY_UP}; sleep".freeze
  STRINGS = "culet-agent 1 strings content=1 most_bytes=100000000 limit_ms=10000 wait_ms=5000\n"
  USER = 54_321

  # More connections than the queue takes, of whom nobody ever asks.
  def test_a_full_queue
    with_agent(WAITS) do |pid|
      assert told?(pid)
      before = possessions(pid)
      flood(pid, 2, 150) { assert told?(pid) }
      assert told?(pid)
      assert_equal before, possessions(pid)
    end
  end

  def test_clients_that_begin_a_question_and_do_not_end_it
    with_agent(WAITS) do |pid|
      slow = Array.new(6) { endpoint(pid) }
      slow.each do |socket|
        socket.write("culet-agent 1 ")
      rescue Errno::EPIPE
        nil # one too many
      end
      assert told?(pid)
    ensure
      slow&.each(&:close)
    end
  end

  # Their answers, of which each is more than a socket's buffer, stay in the process until it loses patience.
  def test_clients_that_do_not_take_their_answers
    with_agent("$kept = Array.new(40_000) { |i| i.to_s * 12 }; #{WAITS}") do |pid|
      readers = Array.new(2) { IO.pipe }
      children = readers.map do |reader, writer|
        fork do
          socket = endpoint(pid)
          socket.write(STRINGS)
          socket.wait_readable
          writer.write("x")
          reader.close
          sleep
        end
      end
      readers.each { |reader,| reader.read(1) }
      assert told?(pid)
    ensure
      children&.each { |child| end_child(child) }
      readers&.flatten&.each(&:close)
    end
  end

  # Each of them asks again as soon as it was answered.
  def test_four_who_ask_without_end
    with_agent(WAITS) do |pid|
      flooders = Array.new(4) do
        fork do
          loop do
            socket = endpoint(pid)
            socket.write("culet-agent 1 data=0 limit_ms=100 wait_ms=5000\n")
          rescue SystemCallError, Culet::Error, Minitest::Assertion
            nil # on with it
          end
        end
      end
      5.times { assert told?(pid) }
    ensure
      flooders&.each { |child| end_child(child) }
    end
  end

  def test_one_that_is_too_busy_for_ever_is_a_sentence
    with_impostor("'busy\n'") do |pid|
      assert_match(/try again\z/, assert_raises(Culet::Error) { ask_in_haste(pid) }.message)
    end
  end

  def test_a_queue_that_stays_full_is_a_sentence
    with_impostor(nil) do |pid|
      error = assert_raises(Culet::Error) { ask_in_haste(pid) }
      assert_match(/is busy with other requests; try again/, error.message)
    end
  end

  def test_one_that_always_hangs_up_is_a_sentence
    with_impostor("''") do |pid|
      error = assert_raises(Culet::Error) { ask_in_haste(pid) }
      assert_equal "process #{pid} closes the connection; try again", error.message
    end
  end

  # All names that an agent ever had.
  def test_names_that_somebody_else_sits_on
    script = <<~RUBY
      require "socket"
      require "culet"
      inode = File.stat("/proc/self/ns/pid").ino
      reader, writer = IO.pipe
      own = Process.pid
      fork do
        $squat = ["", "/1", "/2", "/3"].map { |rest| Socket.new(:UNIX, :STREAM).tap { |one| one.bind(Socket.sockaddr_un("\\0culet-agent/\#{own}/\#{inode}\#{rest}")); one.listen(1) } }
        writer.puts
        sleep
      end
      reader.gets
      Process::Sys.setresgid(#{USER}, #{USER}, #{USER})
      Process::Sys.setresuid(#{USER}, #{USER}, #{USER})
      abort unless Culet::Agent.start
      #{WAITS}
    RUBY
    skip "only root can become another user" unless Process.euid.zero?

    with_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, env: TestHelper::NEUTRAL) { |pid| assert told?(pid) }
  end

  # The process holds a socket of the right name, but its child listens there: SO_PEERCRED names the child.
  def test_a_socket_on_which_another_process_listens
    script = <<~RUBY
      require "socket"
      listener = Socket.new(:UNIX, :STREAM)
      address = Socket.sockaddr_un("\\0culet-agent/\#{Process.pid}/\#{File.stat("/proc/self/ns/pid").ino}")
      reader, writer = IO.pipe
      fork do
        listener.bind(address)
        listener.listen(5)
        writer.puts
        sleep
      end
      reader.gets
      #{WAITS}
    RUBY
    with_program(RbConfig.ruby, "-e", script, env: TestHelper::NEUTRAL) do |pid|
      endpoint = Culet::Agent::Endpoint.new(Culet::Processes::Live.find(pid))
      assert_predicate endpoint, :listens?
      assert_nil endpoint.connect
    end
  end

  # A zombie has no network namespace, and what was waited for no folder in /proc.
  def test_a_process_that_ends_before_its_sockets_are_listed_has_none
    with_agent(WAITS) do |pid|
      endpoint = Culet::Agent::Endpoint.new(Culet::Processes::Live.find(pid))
      assert_predicate endpoint, :listens?
      Process.kill(:KILL, pid)
      assert_settles("it has ended") { File.read("/proc/#{pid}/stat").match?(/\) Z /) && Dir.children("/proc/#{pid}/task").size == 1 }
      assert_nil endpoint.connect
      await_end(pid)
      assert_nil endpoint.connect
      refute_predicate endpoint, :listens?
    end
  end

  # The kernel has no such device then: the namespace's last process ended after the file was found.
  def test_a_network_namespace_that_ends_has_no_sockets
    endpoint = Culet::Agent::Endpoint.new(Culet::Processes::Live.find(Process.pid))
    File.stub(:foreach, ->(*, **) { raise Errno::ENXIO }) { refute_predicate endpoint, :listens? }
  end

  # In the kernel's list, a name with a line's end in it looks like two sockets, and the second like the agent's own.
  def test_a_name_that_seems_to_be_the_agents
    skip "only root can become another user" unless Process.euid.zero?

    script = "require 'culet'; Process::Sys.setresgid(*[#{USER}] * 3); Process::Sys.setresuid(*[#{USER}] * 3); Culet::Agent.start or abort; #{WAITS}"
    with_program(RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", script, env: TestHelper::NEUTRAL) do |pid|
      inode = File.read("/proc/net/unix")[%r{ (\d+) @culet-agent/#{pid}/}, 1]
      names = ["culet-agent/#{pid}/0", "0\n0: 00000002 00000000 00010000 0001 01 #{inode} @culet-agent/#{pid}/0"]
      sockets = names.map { |name| Socket.new(:UNIX, :STREAM).tap { |one| one.bind(Socket.sockaddr_un("\0#{name}")) && one.listen(0) } }
      sockets += Array.new(4) { full(sockets.first.local_address) }
      assert told?(pid)
    ensure
      sockets&.compact&.each(&:close)
    end
  end

  # ---- the folder ----

  def test_in_a_folder_of_the_users_own
    with_folder do |folder|
      with_agent("fork { #{WAITS} }; sleep", env: at(folder)) do |pid|
        names = names_in(folder)
        assert_equal [*children(pid), pid].sort, names.map { |name| name[/\Aagent-(\d+)-/, 1].to_i }.sort
        assert_equal 0o700, File.stat("#{folder}/culet").mode & 0o777
        refute_match(%r{@culet-agent/#{pid}/}, File.read("/proc/net/unix"))
        [pid, *children(pid)].each { |one| assert told?(one) }
      end
    end
  end

  def test_another_user_does_not_get_at_it
    skip "only root can become another user" unless Process.euid.zero?

    with_folder do |folder|
      with_agent(WAITS, env: at(folder)) do |pid|
        assert_match(/belongs to another user/, as_user(USER) { ask(pid).inspect })
        path = "#{folder}/culet/#{names_in(folder).first}"
        File.chmod(0o755, folder)
        assert_match(/Permission denied/, as_user(USER) { Socket.unix(path, &:read) })
      end
    end
  end

  # The name goes when the process ends; one that was killed leaves it, until the next one comes.
  def test_names_are_removed
    with_folder do |folder|
      inside_folder(folder, "exit")
      assert_empty names_in(folder)
      inside_folder(folder, "Process.kill(:KILL, $$)")
      assert_equal 1, names_in(folder).size
      with_agent(WAITS, env: at(folder)) { |pid| assert_equal([pid], names_in(folder).map { |name| name[/\d+/].to_i }) }
    end
  end

  def test_folders_that_are_not_the_users_alone_are_not_used
    with_folder do |folder|
      Dir.mkdir("#{folder}/real", 0o700)
      File.symlink("real", "#{folder}/link")
      Dir.mkdir("#{folder}/open")
      File.chmod(0o777, "#{folder}/open")
      Dir.mkdir("#{folder}/within", 0o700)
      Dir.mkdir("#{folder}/within/culet")
      File.chmod(0o755, "#{folder}/within/culet")
      %w[link open within missing].each do |name|
        with_agent(WAITS, env: at("#{folder}/#{name}")) do |pid|
          refute(Dir.glob("#{folder}/**/agent-*").any?, name)
          assert told?(pid)
        end
      end
    end
  end

  private

  def told?(pid) = ask(pid, data: false, limit_seconds: 5.0, wait_seconds: 5.0).fact("objects")["complete"]

  # Each look at the clock takes a second, so that time is over soon.
  def ask_in_haste(pid)
    time = Culet::Clock.now
    Culet::Clock.stub(:now, -> { time += 1 }) do
      Culet::Agent::Conversation.new(pid).ask("data=0", limit_seconds: 0.1, wait_seconds: 0.1)
    end
  end

  def at(folder) = { "XDG_RUNTIME_DIR" => folder }

  def names_in(folder) = Dir.children("#{folder}/culet")

  def with_folder(&block) = Dir.mktmpdir("culet-test", &block)

  def full(address)
    Socket.new(:UNIX, :STREAM).tap { |socket| socket.connect_nonblock(address) }
  rescue Errno::EAGAIN
    nil
  end

  def inside_folder(folder, script) = run_program(*CARRYING, "-e", script, env: TestHelper::NEUTRAL.merge(at(folder)))

  # Yields while processes hold connections of which none asks.
  def flood(pid, processes, connections)
    first = endpoint(pid)
    address = first.remote_address
    pipes = Array.new(processes) { IO.pipe }
    children = pipes.map do |reader, writer|
      fork do
        reader.close
        held = Array.new(connections) do
          Socket.new(:UNIX, :STREAM).tap { |socket| socket.connect_nonblock(address) }
        rescue SystemCallError
          nil # full
        end
        writer.write("x")
        sleep
        held.clear
      end
    end
    pipes.each { |reader,| reader.wait_readable(PATIENCE_SECONDS) }
    yield
  ensure
    children&.each { |child| end_child(child) }
    [first, *pipes&.flatten].compact.each(&:close)
  end

  def end_child(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
