# frozen_string_literal: true

require "test_helper"
require "culet/tools/compare/bundle"
require "culet/benchmark/child"
require "culet/tools/compare/load_target"
require "json"
require "net/http"

# Real servers, started as their users start them, with gems of their own and culet on the load path.
module ServerHelper
  DIRECTORY = __dir__
  APPLICATION = File.join(DIRECTORY, "application.ru")
  START_SECONDS = 120
  MEBIBYTE = 1 << 20

  # Makes a test class for each older Puma, when all tests run.
  #
  # @param tests [Module] with the tests, for the Puma of GEMFILE
  # @param suffix [String] of the names of the classes
  def self.each_older_puma(tests, suffix)
    return unless ENV.key?("CULET_TEST_ALL")

    %w[puma-5 puma-6 puma-7].each do |name|
      made = Class.new(Minitest::Test) { include tests }
      made.const_set(:GEMFILE, "#{name}/Gemfile")
      Object.const_set("#{name.delete("-").capitalize}#{suffix}", made)
    end
  end

  # One that runs, in a session of its own, which its processes do not leave whatever groups they make. Its output is
  # kept for the test to look at.
  class Server
    attr_reader :pid, :port

    def initialize(command, environment, port)
      @port = port
      @output = File.open(File.join(Dir.tmpdir, "culet-server-#{Process.pid}-#{port}"), File::RDWR | File::CREAT | File::EXCL, 0o600)
      File.unlink(@output.path)
      @pid = Process.spawn(environment, "setsid", *command, unsetenv_others: true, in: File::NULL, out: @output, err: @output)
      @waiter = Process.detach(@pid)
    end

    # @return [String] what it wrote so far
    def output = @output.tap(&:rewind).read

    # @return [Boolean] whether the first process lives
    def alive? = @waiter.alive?

    # @return [String] the answer's body
    # @raise [SystemCallError, EOFError] where nobody answers
    def get(path)
      Net::HTTP.start("127.0.0.1", @port, open_timeout: 60, read_timeout: 60) { |http| http.get(path, "connection" => "close") }.body
    end

    # @return [Hash] what application.ru tells of the process that answers
    def figures = JSON.parse(get("/"))

    # Ends it as its users do.
    #
    # @param seconds [Numeric] how long to wait for its end
    # @return [Process::Status, nil] nil where it does not end
    def stop(signal: "TERM", seconds: TestHelper::PATIENCE_SECONDS)
      Process.kill(signal, @pid) if alive?
      @waiter.join(seconds)&.value
    end

    # @return [Array<Integer>] its processes that live
    def processes
      Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i).select { |pid| session(pid) == @pid }
    end

    # Ends whatever is left.
    def kill
      processes.each { |pid| Process.kill("KILL", pid) }
    rescue Errno::ESRCH
      retry # one has ended meanwhile
    ensure
      @waiter.join
      @output.close
    end

    private

    # Fields of proc(5) after the name: the state, the parent, the group, the session.
    def session(pid)
      text = File.read("/proc/#{pid}/stat")
      state, _parent, _group, session = text.byteslice((text.rindex(")") + 2)..).split
      session.to_i unless state == "Z"
    rescue SystemCallError
      nil
    end
  end

  # @param gemfile [String] below test/servers
  # @raise [Minitest::Skip] where the gems cannot be had
  def bundle(gemfile = "Gemfile")
    name = gemfile == "Gemfile" ? "servers" : "servers-#{File.dirname(gemfile)}"
    found = Culet::Compare::Bundle.new(name: name, gemfile: File.join(DIRECTORY, gemfile))
    one_at_a_time { found.install(log: $stderr) } unless found.installed?
    found
  rescue Culet::Benchmark::Exclusion => e
    skip "#{e.message}; #{e.remedy}"
  end

  # Runs a command of the bundle and yields the server once it answers. It must end by itself then, and leave nothing.
  #
  # @param command [Array<String>] e.g. ["puma", "-C", file]; it finds the environment's PORT
  # @param up [#call] given the server, whether it is up; by default once it answers
  # @param under [Array<String>] words of a program that becomes the command
  def with_server(*command, env: {}, gems: bundle, up: method(:answers?), under: [])
    port = Culet::Compare::LoadTarget.free_port
    server = Server.new([*under, RbConfig.ruby, "-S", "bundle", "exec", *command], environment(gems).merge(env, "PORT" => port.to_s), port)
    wait_until(server, up)
    yield server
    server.stop
    refute server.alive?, "it does not end: #{server.output}"
    assert_settles("no process is left") { server.processes.empty? }
  ensure
    server&.kill
  end

  # Makes garbage in the server, has it collected, and waits for the memory to go back.
  #
  # @return [Hash] the figures of the process then
  def waste_and_wait(server, bytes: 20 * MEBIBYTE)
    server.get("/garbage")
    server.get("/collect")
    figures = nil
    assert_settles(-> { "#{bytes} bytes are given back, not #{figures}" }) do
      figures = server.figures
      figures if figures["trim"]["returned_bytes"] >= bytes
    end
  end

  # The figures of all workers. Requests that come at once are shared out among them.
  #
  # @param count [Integer] how many workers there are
  # @return [Hash{Integer => Hash}] by the worker's number
  def workers(server, count)
    found = {}
    assert_settles("#{count} workers answer") do
      found = at_once(server, "/", 6 * count).to_h { |body| JSON.parse(body).then { |figures| [figures["pid"], figures] } }
      found.size == count
    end
    found
  end

  # Has each of so many workers make garbage, and waits until each has returned so many bytes.
  def waste_and_wait_in_workers(server, count, bytes: 10 * MEBIBYTE)
    seen = {}
    assert_settles(-> { "each of #{count} workers gives back #{bytes} bytes, not #{seen}" }) do
      at_once(server, "/garbage", 2 * count)
      at_once(server, "/collect", 4 * count)
      seen.replace(workers(server, count))
      seen.each_value.all? { |figures| figures["trim"]["returned_bytes"] >= bytes }
    end
  end

  # @return [Array<String>] the bodies of the answers to so many requests
  def at_once(server, path, count) = Array.new(count) { Thread.new { server.get(path) } }.map(&:value)

  private

  # Test files that run at the same time want the same gems.
  def one_at_a_time
    FileUtils.mkdir_p(Culet::Compare::Bundle.cache)
    File.open(File.join(Culet::Compare::Bundle.cache, "servers.lock"), File::RDWR | File::CREAT) do |file|
      file.flock(File::LOCK_EX)
      yield
    end
  end

  def environment(gems)
    base = defined?(Bundler) ? Bundler.unbundled_env : ENV.to_h
    base.merge(TestHelper::NEUTRAL, gems.environment,
               "RUBYLIB" => "#{TestHelper::ROOT}/lib", "CULET_TRIM" => nil,
               "WEB_CONCURRENCY" => nil, "RACK_ENV" => "production").compact
  end

  def wait_until(server, up)
    assert_settles(-> { "the server is up: #{server.output}" }, seconds: START_SECONDS) do
      up.call(server) || (flunk "the server ended: #{server.output}" unless server.alive?)
    end
  end

  def answers?(server)
    server.get("/")
    true
  rescue SystemCallError, EOFError
    false
  end
end
