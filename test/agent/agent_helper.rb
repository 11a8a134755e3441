# frozen_string_literal: true

require "scope/scope_helper"
require "culet/model/agent/inquiry"
require "socket"

# Ruby programs that carry the agent, and ways to ask them.
module AgentHelper
  include ScopeHelper

  CARRYING = [RbConfig.ruby, "-w", "-I#{TestHelper::ROOT}/lib", "-rculet/agent"].freeze
  SAY_UP = "puts :up; $stdout.flush"

  # @param script [String] a Ruby program that prints a line once it can be asked
  # @yieldparam pid [Integer]
  def with_agent(script, env: {}, err: $stderr, &block)
    with_program(*CARRYING, "-e", script, env: TestHelper::NEUTRAL.merge(env), err: err, &block)
  end

  # @return [Culet::Agent::Records] what the process told
  def ask(pid, **options) = Culet::Agent::Inquiry.new(pid, **options).call

  # @return [Hash] what it told of one type
  def type(supplement, name) = supplement.fact("objects")["types"].find { |one| one["name"] == name } || flunk("there is no #{name}")

  # Runs a Ruby program with the extension and gives what it printed.
  def inside(script, *flags)
    out, err, status = run_program(*CARRYING, *flags, "-rjson", "-e", script, env: TestHelper::NEUTRAL)
    assert_equal [true, ""], [status.success?, err]
    out
  end

  # The agent's own detail as Hashes by kind, for scripts of `inside`.
  DETAIL = <<~RUBY
    def detail(data: true, limit: 10.0) = Culet::Agent.detail(data, limit).lines.map { |line| JSON.parse(line) }.to_h { |one| [one["kind"], one] }
    def types(**options) = detail(**options)["objects"]["types"].to_h { |one| [one["name"], one] }
  RUBY

  # Speaks to the agent without the class that usually does.
  def raw(pid, line)
    socket = endpoint(pid)
    socket.write(line)
    assert socket.wait_readable(TestHelper::PATIENCE_SECONDS)
    socket.read
  rescue Errno::ECONNRESET
    "" # it hung up on what it had not read
  ensure
    socket&.close
  end

  # @return [Socket] a connection to the agent
  def endpoint(pid) = Culet::Agent::Endpoint.new(Culet::Processes::Live.find(pid)).connect || flunk("process #{pid} does not listen")

  # A process that calls itself an agent. answer: what it sends, as Ruby; nil: it never accepts, and its queue is full
  def with_impostor(answer, &block)
    script = <<~RUBY
      require "socket"
      listener = Socket.new(:UNIX, :STREAM)
      listener.bind(Socket.sockaddr_un("\\0culet-agent/\#{Process.pid}/\#{File.stat("/proc/self/ns/pid").ino}"))
      listener.listen(0)
      $held = Array.new(#{answer ? 0 : 4}) { Socket.new(:UNIX, :STREAM).tap { |one| one.connect_nonblock(listener.local_address) rescue nil } }
      #{SAY_UP}
      sleep if #{answer.nil?}
      loop do
        connection = listener.accept.first
        connection.gets
        connection.write(#{answer})
      rescue SystemCallError
        nil # it was not believed
      ensure
        connection&.close
      end
    RUBY
    with_program(RbConfig.ruby, "-e", script, env: TestHelper::NEUTRAL, &block)
  end

  # @return [Array(Integer, Integer)] how many descriptors and threads the process has; the least of some moments, because
  #   it hangs up a little after the answer is here
  def possessions(pid)
    Array.new(5) do
      sleep 0.02
      [Dir.children("/proc/#{pid}/fd").size, Dir.children("/proc/#{pid}/task").size]
    end.min
  end

  # @return [Array<Integer>] of all its threads, the oldest first
  def children(pid) = Dir.glob("/proc/#{pid}/task/*/children").flat_map { |path| File.read(path).split }.map(&:to_i).sort

  NOBODY = 65_534

  # Runs the block as another user, in a process of its own, and gives what it returned or the words of what it raised.
  def as_user(number, group: number)
    reader, writer = IO.pipe
    child = fork do
      reader.close
      Process::Sys.setgid(group)
      Process::Sys.setuid(number)
      writer.write(begin
        yield
      rescue StandardError => e
        e.message
      end)
      writer.close
      exit!(0)
    end
    writer.close
    reader.read
  ensure
    reader.close
    Process.wait(child)
  end
end
